// A Hono app: one limit for all clients, and a budget of bytes for downloads, charged by what was actually sent.
import { serve } from "@hono/node-server";
import { rateLimit } from "@sluice/middleware/hono";
import { Hono } from "hono";
import { stream } from "hono/streaming";

const app = new Hono();

// 60 requests a minute for each client address, ten at once.
app.use(rateLimit("60/m burst 10"));

// 1 000 KiB of downloads an hour. A request costs 1 at the start, and the rest when its last byte is sent.
app.use("/files/*", rateLimit("1000/h", { charge: (_context, { bytes }) => bytes / 1024 }));

app.get("/", (context) => context.text("hello"));
app.get("/files/:name", (context) =>
  stream(context, async (out) => {
    for (let i = 0; i < 16; i++) await out.write(new Uint8Array(32 * 1024));
  }),
);

serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? "3000") }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}`);
});
