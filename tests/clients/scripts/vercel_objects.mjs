// Vercel's AI SDK: an object of a schema for each message, through the protocol that WIRE names.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject } from "ai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const { BASE_URL, KEY, MODEL, WIRE } = process.env;
const settings = { baseURL: `${BASE_URL}/v1`, apiKey: KEY };
const model = {
  chat: () => createOpenAICompatible({ name: "dominds", supportsStructuredOutputs: true, ...settings })(MODEL),
  responses: () => createOpenAI(settings).responses(MODEL),
  messages: () => createAnthropic(settings)(MODEL),
}[WIRE]();
const schema = z.object({ task: z.number(), outcome: z.string() });
const said = [];
const answers = [];
for (const text of process.argv.slice(2)) {
  said.push({ role: "user", content: text });
  const answer = JSON.stringify((await generateObject({ model, messages: said, schema })).object);
  answers.push(answer);
  said.push({ role: "assistant", content: answer });
}
console.log(JSON.stringify(answers));
