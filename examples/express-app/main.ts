// An Express app with a limit for all clients, a stricter one for logging in, and one per user.

import { rateLimit } from "@sluice/middleware/express";
import { redis } from "@sluice/redis";
import express from "express";
import { limit } from "sluice";

const app = express();
app.set("trust proxy", "loopback"); // the proxies that may name the client

// Counters in this process, or shared by every process behind REDIS_URL.
const { REDIS_URL, PORT = "3000" } = process.env;
const counters = REDIS_URL === undefined ? undefined : redis(REDIS_URL);
await counters?.connected();

// All clients: 100 requests a minute for each client address.
app.use(rateLimit("100/m", { name: "all", counters }));

// Logging in: only failures count, and after five of them the address has to wait for a minute.
const login = rateLimit("5/m", {
  name: "login",
  counters,
  algorithm: "sliding_window",
  blockFor: "1m",
  giveBack: (_request, { status }) => status < 400,
});
app.post("/login", login, express.json(), (request, response) => {
  const known = request.body?.password === "correct horse";
  response.status(known ? 200 : 401).json({ welcome: known });
});

// Reports are expensive: six a minute for each user, three at once. Visitors who are not signed in count by address.
const reports = limit("6/m burst 3", { name: "reports", counters }).by("subject");
const findUser = (request: express.Request): string | undefined => request.header("x-user");
app.get("/reports/:id", rateLimit(reports, { dimensions: { user: findUser } }), (request, response) => {
  response.json({ report: request.params.id });
});

const server = app.listen(Number(PORT), "127.0.0.1", () => {
  const address = server.address();
  console.log(`listening on http://127.0.0.1:${typeof address === "object" ? address?.port : PORT}`);
});
