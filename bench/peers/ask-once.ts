import { once } from "node:events";
import { connect } from "node:net";
import { Client, credentials } from "@grpc/grpc-js";
import type { Question } from "./questions.ts";
import type { ServerPorts } from "./start-server-under-load.ts";

/** Throws unless the answer is a decision that allows: load tools see only that there is an answer. */
export async function askOnce(question: Question, ports: ServerPorts): Promise<void> {
  const allowed = await ask(question, ports);
  if (!allowed) throw new Error(`a server did not allow what it was asked over ${question.protocol}`);
}

async function ask(question: Question, ports: ServerPorts): Promise<boolean> {
  switch (question.protocol) {
    case "grpc":
      return question.isAllowed(await callOnce(ports.grpc, question.path, question.message));
    case "http": {
      const answer = await fetch(`http://127.0.0.1:${ports.http}${question.path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: question.body.replace("%d", "7"),
      });
      return question.isAllowed(await answer.json());
    }
    case "resp": {
      const socket = connect(ports.resp, "127.0.0.1");
      try {
        const words = question.command.map((word) => word.replace("__rand_int__", "7"));
        socket.write(`*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`);
        const [answer] = (await once(socket, "data")) as [Buffer];
        return question.isAllowed(answer.toString("latin1"));
      } finally {
        socket.destroy();
      }
    }
  }
}

async function callOnce(port: number, path: string, message: Uint8Array): Promise<Uint8Array> {
  const caller = createCaller(port, path);
  try {
    return await caller.call(message);
  } finally {
    caller.close();
  }
}

/** Unary calls of one method, with messages that are encoded already. */
export interface Caller {
  call(message: Uint8Array): Promise<Uint8Array>;
  close(): void;
}

export function createCaller(port: number, path: string): Caller {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const asItIs = (bytes: Uint8Array): Buffer => Buffer.from(bytes);
  return {
    call: (message) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(path, asItIs, asItIs, message, (error, answer) =>
          error === null ? resolve(answer!) : reject(error),
        );
      }),
    close: () => client.close(),
  };
}
