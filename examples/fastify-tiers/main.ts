// A Fastify app whose limits are in a policy file, applied on every change, with higher limits for paying users.
import path from "node:path";
import { rateLimit } from "@sluice/middleware/fastify";
import { fastify } from "fastify";
import { createLimiter } from "sluice";
import { followPolicyFile, policyFile } from "sluice/policy-file";

const file = path.join(import.meta.dirname, "limits.yaml");
const limiter = createLimiter({ policies: policyFile(file) });

/** Stands in for a database table: the owner of each key, and their tier. */
const keys = new Map([
  ["key-of-ada", { user: "ada", tier: "premium" }],
  ["key-of-bob", { user: "bob", tier: "free" }],
]);
const findOwner = (key: string | string[] | undefined) => keys.get(String(key));

const app = fastify({ trustProxy: "127.0.0.1" });
await app.register(
  rateLimit(limiter, {
    dimensions: {
      user: (request) => findOwner(request.headers["x-api-key"])?.user,
      tier: (request) => findOwner(request.headers["x-api-key"])?.tier,
    },
    skip: (request) => request.routeOptions.url === "/health",
  }),
);

app.get("/health", async () => ({ status: "ok" }));
app.get("/search", async () => ({ found: [] }));
app.get("/export", async () => ({ rows: 100_000 }));

const follower = followPolicyFile(limiter, file, { onProblem: (error) => console.error(String(error)) });
app.addHook("onClose", async () => follower.close());
console.log(`listening on ${await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT ?? "3000") })}`);
