import { connect, type Socket } from "node:net";

/** Persistent connections, each of which sends one request after the other. */
export class HttpLoad {
  readonly #sockets: readonly Socket[];

  private constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets;
  }

  static async open(port: number, connections: number): Promise<HttpLoad> {
    const sockets = await Promise.all(
      Array.from({ length: connections }, async () => {
        const socket = connect(port, "127.0.0.1").setNoDelay();
        await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
        return socket;
      }),
    );
    return new HttpLoad(sockets);
  }

  /** Sends `count` requests. Rejects at the first answer that is not `expected`, so that nothing else is measured. */
  async send(requests: readonly Buffer[], count: number, expected: (answer: string) => boolean): Promise<void> {
    let next = 0;
    await Promise.all(
      this.#sockets.map(
        (socket) =>
          new Promise<void>((resolve, reject) => {
            let answer = "";
            const finish = (error?: Error): void => {
              socket.off("data", onData).off("close", onClose);
              if (error === undefined) resolve();
              else reject(error);
            };
            const onClose = (): void => finish(new Error("the app closed a connection"));
            const send = (): void => {
              if (next < count) socket.write(requests[next++ % requests.length]!);
              else finish();
            };
            const onData = (data: Buffer): void => {
              answer += data.toString("latin1");
              if (!answer.endsWith("\r\n\r\nok") && !answer.endsWith("0\r\n\r\n")) return;
              if (expected(answer)) {
                answer = "";
                send();
              } else finish(new Error(`unexpected answer: ${answer}`));
            };
            socket.on("data", onData).on("close", onClose);
            send();
          }),
      ),
    );
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
