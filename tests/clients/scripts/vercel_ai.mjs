// Vercel's AI SDK: streamed text with a tool, through the protocol that WIRE names, and an object at the end.
import { execSync } from "node:child_process";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const { BASE_URL, KEY, MODEL, WIRE } = process.env;
const settings = { baseURL: `${BASE_URL}/v1`, apiKey: KEY };
const model = {
  chat: () => createOpenAICompatible({ name: "dominds", includeUsage: true, ...settings })(MODEL),
  responses: () => createOpenAI(settings).responses(MODEL),
  messages: () => createAnthropic(settings)(MODEL),
}[WIRE]();
const run = tool({
  description: "Run a command.",
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => execSync(command).toString(),
});
const said = [];
const answers = [];
for (const text of process.argv.slice(2)) {
  said.push({ role: "user", content: text });
  const done = streamText({ model, messages: said, tools: { run }, stopWhen: stepCountIs(5) });
  answers.push(await done.text);
  said.push(...(await done.response).messages);
}
console.log(JSON.stringify(answers));
