import {
  type CallOptions,
  type ChannelOptions,
  Client,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import {
  CheckRequest as CheckMessage,
  type GrpcMethod,
  grpcService,
  RateLimiterDefinition,
  type ResetKeyResponse,
} from "@sluice/protocol";
import { HealthDefinition } from "@sluice/protocol/health";
import { SluiceError } from "sluice";
import {
  type AnswerValue,
  type Exchange,
  ExchangeError,
  type ExchangeEvents,
  type Question,
  type QuestionKind,
  type Reply,
  type Sending,
  type SentQuestion,
} from "../exchange.ts";
import { noLeases } from "../leases/no-leases.ts";
import type { Address } from "../parse-addresses.ts";
import type { ConnectOptions, TlsOptions } from "../remote-limiter.ts";
import { CheckStream } from "./check-stream.ts";
import { decodeLease } from "./decode-lease.ts";
import { failureFromStatus, replyFromStatus } from "./status-failure.ts";

const limiter = grpcService(RateLimiterDefinition);
const health = grpcService(HealthDefinition);

const channelOptions: ChannelOptions = {
  // One connection for each address and client, which ends with it.
  "grpc.use_local_subchannel_pool": 1,
  // This client knows which questions may be repeated; grpc-js does not.
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  // A web proxy named by the environment does not lead to a limiter.
  "grpc.enable_http_proxy": 0,
  "grpc.max_receive_message_length": 16 * 1024 * 1024,
};

interface Call<Res> {
  readonly call: ClientUnaryCall;
  readonly answer: Promise<Res>;
}

/** Questions over gRPC: checks on one stream, everything else in separate calls. */
export class GrpcExchange implements Exchange {
  readonly maxInFlight: number = 32;
  readonly #address: Address;
  readonly #tls: TlsOptions;
  readonly #metadata: Metadata;
  readonly #events: ExchangeEvents;
  #client: Client | undefined;
  #stream: CheckStream | undefined;
  readonly #calls = new Set<ClientUnaryCall>();

  constructor(address: Address, { token, tls = {} }: ConnectOptions, events: ExchangeEvents) {
    this.#address = address;
    this.#tls = tls;
    this.#events = events;
    this.#metadata = new Metadata();
    if (token !== undefined) this.#metadata.set("authorization", `Bearer ${token}`);
  }

  /** A new connection for each attempt, so that its failure is known. It is ready when it answers. */
  async open(withinMs: number): Promise<void> {
    this.#leave();
    const client = this.#createClient();
    this.#client = client;
    try {
      await this.#call(client, health.check, { service: "" }, { deadline: Date.now() + withinMs }).answer;
    } catch (error) {
      if (isAlive(error as ServiceError)) return;
      client.close();
      throw failureFromStatus(error as ServiceError);
    }
  }

  send(kind: QuestionKind, questions: readonly SentQuestion[]): Sending {
    const client = this.#client;
    if (client === undefined) {
      const replies = Promise.reject(new ExchangeError("not_asked", "there is no connection"));
      return { replies, abandon: () => undefined };
    }
    if (kind !== "check") return this.#sendOne(client, questions[0]!.question);
    if (this.#stream?.usable !== true) {
      this.#stream = new CheckStream(client, this.#metadata, ({ because, message }) => {
        // A refusal proves that the connection works.
        if (because !== "refused" && this.#client === client) this.#events.onEnd(message);
      });
    }
    return this.#stream.send(questions);
  }

  close(): void {
    this.#leave();
    for (const call of this.#calls) call.cancel();
  }

  /** Nothing more is sent on this connection. Its calls may still be answered, even by a server that is leaving. */
  #leave(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#stream?.cancel();
    this.#stream = undefined;
    client?.close();
  }

  #sendOne(client: Client, question: Question): Sending {
    const calls = this.#ask(client, question);
    const answers = Promise.all(calls.map(({ answer }) => answer));
    return {
      replies: answers.then(
        (answers) => [{ kind: "answer", value: decodeAnswer(question.kind, answers) }],
        (error: ServiceError) => {
          const reply = replyFromStatus(error);
          if (question.kind === "reset" && reply?.kind === "refused") return [byPolicies(reply)];
          // An unavailable lease says nothing about checks, neither of a server nor of a proxy in front of it.
          if (question.kind === "lease" && reply !== undefined) return [reply];
          if (question.kind === "lease" && isAlive(error)) return [{ kind: "refused", error: noLeases }];
          if (reply === undefined || reply.kind === "failed") throw failureFromStatus(error);
          return [reply];
        },
      ),
      abandon() {
        for (const { call } of calls) call.cancel();
      },
    };
  }

  #ask(client: Client, question: Question): readonly Call<object>[] {
    if (question.kind === "give") return [this.#call(client, limiter.giveBack, { receipt: question.receipt })];
    const { domain = "", dimensions = {}, cost, policies = [] } = question.request;
    if (question.kind === "charge")
      return [this.#call(client, limiter.charge, { domain, dimensions, cost, policies: [...policies] })];
    if (question.kind === "lease") {
      const check = CheckMessage.create({ domain, dimensions, policies: [...policies] });
      const { want, settled } = question;
      return [this.#call(client, limiter.lease, { check, want, holdMs: 0, settled })];
    }
    const named = policies.length === 0 ? [""] : policies;
    return named.map((policyId) => this.#call(client, limiter.resetKey, { policyId, domain, dimensions }));
  }

  /** Its answer rejects with a `ServiceError`. */
  #call<Req, Res>(
    client: Client,
    { path, requestSerialize, responseDeserialize }: GrpcMethod<Req, Res>,
    message: Req,
    options: CallOptions = {},
  ): Call<Res> {
    let call: ClientUnaryCall;
    const answer = new Promise<Res>((resolve, reject) => {
      call = client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        message,
        this.#metadata,
        options,
        (error, found) => {
          this.#calls.delete(call);
          if (error === null) resolve(found!);
          else reject(error);
        },
      );
      this.#calls.add(call);
    });
    return { call: call!, answer };
  }

  #createClient(): Client {
    const { place, tls } = this.#address;
    const { ca, key, cert, serverName } = this.#tls;
    const channel = tls ? credentials.createSsl(pem(ca), pem(key), pem(cert)) : credentials.createInsecure();
    const named = serverName === undefined ? {} : { "grpc.ssl_target_name_override": serverName };
    return new Client(renderTarget(place), channel, { ...channelOptions, ...named });
  }
}

function renderTarget(place: Address["place"]): string {
  if (place.kind === "socket") return `unix:${place.path}`;
  return `${place.host.includes(":") ? `[${place.host}]` : place.host}:${place.port}`;
}

function decodeAnswer(kind: QuestionKind, answers: readonly object[]): AnswerValue {
  const [answer] = answers;
  if (kind === "lease") return decodeLease(answer);
  if (kind === "reset")
    return (answers as readonly ResetKeyResponse[]).reduce((sum, one) => sum + one.countersReset, 0);
  return kind === "give" ? isGiven(answer) : undefined;
}

/** A reset asks for each policy in a separate call, as `policy_id`; callers use `policies`. */
function byPolicies({ error }: Extract<Reply, { kind: "refused" }>): Reply {
  const problems = error.problems.map((one) => (one.path[0] === "policy_id" ? { ...one, path: ["policies"] } : one));
  return { kind: "refused", error: new SluiceError(error.code, error.message, problems) };
}

function isGiven(answer: object | undefined): boolean {
  return answer !== undefined && "given" in answer && answer.given === true;
}

/** Whether a server that ends a call this way is reachable. */
function isAlive({ code }: ServiceError): boolean {
  return alive.has(code);
}

const alive: ReadonlySet<status> = new Set([
  status.UNIMPLEMENTED,
  status.NOT_FOUND,
  status.UNAUTHENTICATED,
  status.PERMISSION_DENIED,
]);

function pem(text: string | Uint8Array | undefined): Buffer | null {
  return text === undefined ? null : Buffer.from(text as Uint8Array);
}
