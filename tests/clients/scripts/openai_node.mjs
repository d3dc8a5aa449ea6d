// OpenAI's package for Node: its runner of tools over chat completions, or streamed Responses with a loop of its user's.
import { execSync } from "node:child_process";
import OpenAI from "openai";

const { BASE_URL, KEY, MODEL, WIRE } = process.env;
const client = new OpenAI({ baseURL: `${BASE_URL}/v1`, apiKey: KEY, maxRetries: 0 });
const run = ({ command }) => execSync(command).toString();
const parameters = { type: "object", properties: { command: { type: "string" } }, required: ["command"], additionalProperties: false };
const described = { name: "run", description: "Run a command.", parameters };

async function byChat(said) {
  const tool = { type: "function", function: { ...described, function: run, parse: JSON.parse } };
  const runner = client.chat.completions.runTools({ model: MODEL, messages: said, tools: [tool], stream: true });
  const answer = await runner.finalContent();
  said.splice(0, said.length, ...runner.messages);
  return answer;
}

async function byResponses(said) {
  for (;;) {
    const tools = [{ type: "function", strict: true, ...described }];
    const done = await client.responses.stream({ model: MODEL, input: said, tools, store: false }).finalResponse();
    said.push(...done.output);
    const calls = done.output.filter((item) => item.type === "function_call");
    if (!calls.length) return done.output_text;
    for (const call of calls) {
      said.push({ type: "function_call_output", call_id: call.call_id, output: run(JSON.parse(call.arguments)) });
    }
  }
}

const said = [];
const answers = [];
for (const text of process.argv.slice(2)) {
  said.push({ role: "user", content: text });
  answers.push(await (WIRE === "responses" ? byResponses : byChat)(said));
}
console.log(JSON.stringify(answers));
