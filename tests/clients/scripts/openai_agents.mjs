// OpenAI's Agents SDK for Node: the whole conversation each turn, by chat completions or Responses.
import { execSync } from "node:child_process";
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true);
const { BASE_URL, KEY, MODEL, WIRE } = process.env;
const client = new OpenAI({ baseURL: `${BASE_URL}/v1`, apiKey: KEY, maxRetries: 0 });
const Model = WIRE === "responses" ? OpenAIResponsesModel : OpenAIChatCompletionsModel;
const shell = tool({
  name: "run",
  description: "Run a command.",
  parameters: z.object({ command: z.string() }),
  execute: async ({ command }) => execSync(command).toString(),
});
const agent = new Agent({ name: "worker", model: new Model(client, MODEL), tools: [shell] });
let said = [];
const answers = [];
for (const text of process.argv.slice(2)) {
  const done = await run(agent, [...said, { role: "user", content: text }]);
  said = done.history;
  answers.push(done.finalOutput);
}
console.log(JSON.stringify(answers));
