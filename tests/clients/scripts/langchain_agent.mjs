// LangChain.js: its agent with a memory, by chat completions, Responses or Messages; WIRE names what else is tried:
// "streamed" takes the answer as it comes, "summarised" has its middleware sum up what is old.
import { execSync } from "node:child_process";
import { ChatAnthropic } from "@langchain/anthropic";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, summarizationMiddleware, tool } from "langchain";
import { z } from "zod";

const { BASE_URL, KEY, MODEL, WIRE } = process.env;
const [wire, ...ways] = WIRE.split("-");
const common = { model: MODEL, maxRetries: 0, streaming: ways.includes("streamed") };
const model =
  wire === "messages"
    ? new ChatAnthropic({ ...common, apiKey: KEY, anthropicApiUrl: BASE_URL, maxTokens: 1000 })
    : new ChatOpenAI({
        ...common,
        apiKey: KEY,
        useResponsesApi: wire === "responses",
        configuration: { baseURL: `${BASE_URL}/v1` },
      });
const shell = tool(async ({ command }) => execSync(command).toString(), {
  name: "run",
  description: "Run a command.",
  schema: z.object({ command: z.string() }),
});
const agent = createAgent({
  model,
  tools: [shell],
  checkpointer: new MemorySaver(),
  middleware: ways.includes("summarised")
    ? [summarizationMiddleware({ model, trigger: { messages: 12 }, keep: { messages: 4 } })]
    : [],
});
const one = { configurable: { thread_id: "one" } };
const answers = [];
for (const text of process.argv.slice(2)) {
  const asked = { messages: [{ role: "user", content: text }] };
  let said = [];
  if (ways.includes("streamed")) {
    for await (const [piece, about] of await agent.stream(asked, { ...one, streamMode: "messages" })) {
      if (about.langgraph_node === "model_request" || about.langgraph_node === "model") {
        if (said.at(-1)?.id !== piece.id) said.push({ id: piece.id, text: "" });
        said.at(-1).text += piece.text;
      }
    }
    answers.push(said.at(-1).text);
  } else {
    said = (await agent.invoke(asked, one)).messages;
    answers.push(said.at(-1).text);
  }
}
console.log(JSON.stringify(answers));
