import { type IncomingHttpHeaders, request as startRequest } from "node:http";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The client's own address on loopback, such as `127.0.0.2`. */
  readonly from?: string;
}

/** One request over a separate connection. */
export function ask(url: string, { method = "GET", headers = {}, body, from }: Asking = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = startRequest(
      url,
      { method, headers, agent: false, ...(from !== undefined && { localAddress: from }) },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      },
    );
    asked.on("error", reject);
    asked.end(body);
  });
}

export async function readStatuses(asking: readonly Promise<Answer>[]): Promise<number[]> {
  return (await Promise.all(asking)).map(({ status }) => status);
}
