import { request as startRequest } from "node:http";

/** A client that leaves when the first piece of its answer has come. */
export function leaveDuringAnswer(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = startRequest(url, { agent: false }, (response) => {
      response.on("error", () => {});
      response.once("data", () => {
        asked.destroy();
        resolve();
      });
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** A client that leaves without an answer, on request. */
export function leaveBeforeAnswer(url: string, leave: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = startRequest(url, { agent: false }, () => reject(new Error("there was an answer")));
    asked.on("error", () => resolve());
    asked.end();
    void leave.then(() => asked.destroy());
  });
}
