// @ts-nocheck: the globals of Jest have no types here.
const { once } = require("node:events");
const http = require("node:http");
const app = require("./app.cjs");

/** The status that the app answers with. */
function ask({ port }) {
  return new Promise((resolve, reject) => {
    http
      .get({ port, host: "127.0.0.1", agent: false }, (answer) => resolve(answer.resume().statusCode))
      .on("error", reject);
  });
}

test("the limit ends with its window, by Jest's fake timers", async () => {
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate"] });
  expect([await ask(server.address()), await ask(server.address())]).toEqual([200, 429]);
  jest.advanceTimersByTime(60_000);
  expect(await ask(server.address())).toBe(200);
  server.close();
});
