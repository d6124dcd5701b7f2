import { once } from "node:events";
import { type ArgumentsHost, Catch, UseFilters, UseGuards } from "@nestjs/common";
import nest from "@nestjs/core/package.json" with { type: "json" };
import { WsAdapter } from "@nestjs/platform-ws";
import { SubscribeMessage, WebSocketGateway, WsException } from "@nestjs/websockets";
import {
  findTicket,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
} from "@sluice/middleware/nest";
import { limit } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { decorate, oldest, startNest } from "./nest-app.ts";

interface Message {
  readonly event: string;
  readonly data: unknown;
}

/** Sends errors over the wire, which Nest 12 and later do automatically. */
class SendsErrors {
  catch(exception: WsException, host: ArgumentsHost): void {
    host
      .switchToWs()
      .getClient<WebSocket>()
      .send(JSON.stringify({ event: "exception", data: exception.getError() }));
  }
}
Catch(WsException)(SendsErrors);

function createGateway(): { new (): { greet(client: WebSocket): Message; part(client: WebSocket): Promise<Message> } } {
  class Gateway {
    greet(client: WebSocket): Message {
      return { event: "greeted", data: findTicket(client)?.decision.remaining };
    }
    async part(client: WebSocket): Promise<Message> {
      await findTicket(client)?.charge(5);
      return { event: "parted", data: findTicket(client)?.decision.remaining };
    }
  }
  WebSocketGateway()(Gateway);
  if (oldest) {
    // In version 12 and later, guards of all handlers apply to gateways as well.
    UseGuards(RateLimitGuard)(Gateway);
    UseFilters(SendsErrors)(Gateway);
  }
  decorate(Gateway.prototype, "greet", SubscribeMessage("greet"));
  decorate(Gateway.prototype, "part", SubscribeMessage("part"));
  return Gateway;
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(
  limits: Parameters<typeof RateLimitModule.forRoot>[0],
  options?: RateLimitModuleOptions,
  Gateway = createGateway(),
): Promise<string> {
  const module = { imports: [RateLimitModule.forRoot(limits, options)], providers: [Gateway] };
  const { url, close } = await startNest(module, "express", (app) => void app.useWebSocketAdapter(new WsAdapter(app)));
  closing.push(close);
  return url.replace("http", "ws");
}

/** A client that asks, and waits for the answer. */
async function connect(url: string, localAddress = "127.0.0.1"): Promise<(event: string) => Promise<Message>> {
  const client = new WebSocket(url, { localAddress });
  closing.push(() => client.terminate());
  await once(client, "open");
  return async (event) => {
    const answer = once(client, "message");
    client.send(JSON.stringify({ event, data: {} }));
    const [data] = await answer;
    return JSON.parse(String(data)) as Message;
  };
}

describe(`Nest ${nest.version}: WebSockets`, () => {
  it("counts messages by their client's address, and refuses with the problem as the error", async () => {
    const url = await start("2/h");
    const first = await connect(url);
    const second = await connect(url);
    expect(await first("greet")).toEqual({ event: "greeted", data: 1 });
    expect(await second("greet")).toEqual({ event: "greeted", data: 0 });
    const refused = await first("greet");
    expect(refused).toMatchObject({
      event: "exception",
      data: {
        title: "Too Many Requests",
        status: 429,
        reason: "over_limit",
        limit: 2,
        "violated-policies": ["limit/ip"],
      },
    });
    const other = await connect(url, "127.0.0.2");
    expect(await other("greet")).toEqual({ event: "greeted", data: 1 });
  });

  it("takes the event's name for the endpoint, and knows the client's own fields", async () => {
    const byEvent = await connect(await start(limit("1/h").by("endpoint")));
    expect(await byEvent("greet")).toEqual({ event: "greeted", data: 0 });
    expect(await byEvent("part")).toMatchObject({ event: "parted" });
    expect(await byEvent("greet")).toMatchObject({ event: "exception" });

    const policies = {
      policies: [
        {
          id: "greetings",
          match: { endpoint: "/ws/greet" },
          limits: [{ by: ["user"], windows: ["1/h"] }],
          on_failure: "open",
        },
      ],
      default: { unlimited: true },
    };
    const names = new WeakMap<object, string>();
    let clients = 0;
    const user = (client: object): string => {
      const name = names.get(client) ?? `client ${clients++}`;
      names.set(client, name);
      return name;
    };
    const url = await start({ policies }, { dimensions: { user } });
    for (const one of [await connect(url), await connect(url)]) {
      expect(await one("greet")).toEqual({ event: "greeted", data: 0 });
      expect(await one("greet")).toMatchObject({ event: "exception", data: { policy: "greetings" } });
      expect(await one("part")).toMatchObject({ event: "parted" });
    }
  });

  it("lets a handler charge more by its client's ticket", async () => {
    const one = await connect(await start("20/h"));
    expect(await one("part")).toEqual({ event: "parted", data: 19 });
    expect(await one("greet")).toEqual({ event: "greeted", data: 13 });
  });

  it("obeys decorators on gateways and their handlers", async () => {
    const Gateway = createGateway();
    RateLimit("3/h")(Gateway);
    decorate(Gateway.prototype, "part", RateLimit({ cost: 2 }));
    const one = await connect(await start("9/h", {}, Gateway));
    expect(await one("part")).toEqual({ event: "parted", data: 1 });
    expect(await one("greet")).toMatchObject({ event: "exception" });
  });

  it("counts once if the guard is on a gateway as well", async () => {
    const Gateway = createGateway();
    UseGuards(RateLimitGuard)(Gateway);
    const one = await connect(await start("9/h", {}, Gateway));
    expect(await one("greet")).toEqual({ event: "greeted", data: 8 });
  });

  it("refuses in the app's own words", async () => {
    const one = await connect(await start("1/h", { refuse: () => ({ body: { slow: "down" } }) }));
    await one("greet");
    expect(await one("greet")).toEqual({ event: "exception", data: { slow: "down" } });
  });
});
