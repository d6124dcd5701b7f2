// A gateway in front of a language model. The cost of a call is known only after the answer, so a call holds an estimate,
// which calls at the same time cannot use, and settles it by what the answer took. A client that leaves pays for what
// was sent; a tenant in debt waits until that is refilled.
import { findTicket, rateLimit } from "@sluice/middleware/express";
import express from "express";
import { createLimiter } from "sluice";

const limiter = createLimiter({
  policies: {
    policies: [
      {
        id: "llm.tokens",
        // A call without a tenant is refused: all such calls would share one counter.
        limits: [{ by: ["tenant"], windows: ["1000/m"], tiers: { pro: { windows: ["100k/m"] } }, missing: "deny" }],
        on_failure: "local",
      },
    ],
    subjects: [{ tenant: "acme", tier: "pro" }],
  },
});

const app = express();
app.use(express.json());

// In production, look up the tenant of the API key; never trust what a client claims.
const findTenant = (request: express.Request): string | undefined =>
  request.header("authorization")?.slice("Bearer ".length);

const limits = rateLimit(limiter, { dimensions: { tenant: findTenant }, hold: 400 });
app.post("/v1/chat", limits, async (request, response) => {
  const hold = findTicket(request)?.hold;
  let tokens = 0;
  response.type("text/event-stream");
  try {
    for await (const piece of askModel(String(request.body?.prompt ?? ""))) {
      if (response.destroyed) break;
      tokens += piece.tokens;
      response.write(`data: ${JSON.stringify(piece)}\n\n`);
    }
  } finally {
    // Before the stream ends, so that the next request already sees it.
    await hold?.settle(tokens);
  }
  response.end(`data: ${JSON.stringify({ usage: { tokens } })}\n\n`);
});

/** Stands in for the model: echoes the prompt, one token per word. */
async function* askModel(prompt: string): AsyncGenerator<{ readonly text: string; readonly tokens: number }> {
  for (const word of prompt.split(/\s+/)) {
    await new Promise((resolve) => setImmediate(resolve));
    yield { text: word, tokens: 1 };
  }
}

const server = app.listen(Number(process.env.PORT ?? "3000"), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
});
