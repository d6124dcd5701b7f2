import type { JsonSchema } from "sluice/shape";
import { openAccess } from "../../access/access.ts";
import type { Permission } from "../../access/roles.ts";
import { problemType } from "./errors.ts";
import type { BodyType } from "./read-body.ts";
import type { Route, RouteAnswer } from "./route.ts";
import { schemas } from "./schemas.ts";

type Json = Readonly<Record<string, unknown>>;

/** A route, whatever its handler uses and its answers are called. */
type DescribedRoute = Omit<Route<never, string>, "handle">;

export interface OpenApiOptions {
  readonly title: string;
  readonly description: string;
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  /** The default port. */
  readonly usualPort: number;
  /**
   * Which permissions need a token even on a server without tokens: all, or those that are not open to every caller
   * then.
   */
  readonly alwaysNeedToken: (permission: Permission) => boolean;
  /** Errors of any route that reads a body, by status. Absent: those of routes that decide. */
  readonly bodyErrors?: Readonly<Record<number, string>> | undefined;
}

export const decidingApi: OpenApiOptions = {
  title: "Sluice",
  description: "Rate limiting that is exact and explains itself. A denial is an answer (429), not an error.",
  schemas,
  usualPort: 8080,
  alwaysNeedToken: (permission) => !openAccess.identify(undefined).may.has(permission),
};

/** Describes a route table in OpenAPI 3.1, from the shapes that read the bodies. */
export function renderOpenApi(routes: readonly DescribedRoute[], version: string, options: OpenApiOptions): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path]![route.method.toLowerCase()] = renderOperation(route, options);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: options.title,
      version,
      description: options.description,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [
      { url: "/", description: "The server that this description comes from" },
      {
        url: "http://{host}:{port}",
        description: "A server by its address",
        variables: { host: { default: "127.0.0.1" }, port: { default: String(options.usualPort) } },
      },
    ],
    paths,
    components: {
      schemas: options.schemas,
      headers: rateLimitHeaders,
      securitySchemes: { token: { type: "http", scheme: "bearer", description: tokenDescription } },
    },
  };
}

function renderOperation(route: DescribedRoute, options: OpenApiOptions): Json {
  const parameters = [
    ...renderPathParameters(route),
    ...renderParameters("query", route.query),
    ...renderParameters("header", route.headers),
  ];
  return {
    operationId: operationId(route),
    summary: route.summary,
    ...(route.isDeprecated === true && { deprecated: true }),
    security: renderSecurity(route, options),
    ...(parameters.length > 0 && { parameters }),
    ...(route.bodies !== undefined && {
      requestBody: {
        required: route.bodyOptional !== true,
        content: Object.fromEntries(
          listBodyTypes(route).map((type) => [
            mediaTypes[type],
            { schema: oneOf(route.bodies!.map((shape) => shape.schema)) },
          ]),
        ),
      },
    }),
    responses: {
      ...Object.fromEntries(Object.entries(route.answers).map(([status, answer]) => [status, renderAnswer(answer)])),
      ...(route.bodies !== undefined && renderErrors(options.bodyErrors ?? errorAnswers)),
      default: { description: "Something went wrong", content: { [problemType]: { schema: reference("Error") } } },
    },
  };
}

const tokenDescription =
  "A token of the server. If an operation also lists none, a server without tokens answers without one; a server with tokens never does.";

/** Alternatives: an empty list needs nothing, and an empty entry stands for no token. */
function renderSecurity({ needs }: DescribedRoute, { alwaysNeedToken }: OpenApiOptions): readonly Json[] {
  if (needs === "nothing") return [];
  return alwaysNeedToken(needs) ? [{ token: [] }] : [{ token: [] }, {}];
}

function listBodyTypes({ bodyTypes = ["json"] }: DescribedRoute): readonly BodyType[] {
  return bodyTypes === "untyped" ? ["json"] : bodyTypes;
}

const mediaTypes: Readonly<Record<BodyType, string>> = { json: "application/json", yaml: "application/yaml" };

function renderPathParameters({ path, pathParameters = {} }: DescribedRoute): readonly Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    ...(pathParameters[name] !== undefined && { description: pathParameters[name] }),
    schema: words,
  }));
}

function renderParameters(where: "header" | "query", all: DescribedRoute["query"] = {}): readonly Json[] {
  return Object.entries(all).map(([name, parameter]) => {
    if (typeof parameter === "string") return { name, in: where, description: parameter, schema: words };
    const { description, ...schema } = parameter;
    return { name, in: where, description, schema };
  });
}

const errorAnswers: Readonly<Record<number, string>> = {
  400: "Bad input, every field named; or an unknown policy (policy_not_found)",
  413: "The body is too large",
  415: "The body is not application/json",
  422: "The id was used before for another check (idempotency_conflict)",
};

function renderErrors(errors: Readonly<Record<number, string>>): Json {
  const entries = Object.entries(errors).map(([status, description]) => [
    status,
    { description, content: { [problemType]: { schema: reference("Error") } } },
  ]);
  return Object.fromEntries(entries);
}

function renderAnswer({
  description,
  content,
  alsoText,
  alsoCsv,
  rateLimitHeaders: withHeaders,
  headers = {},
}: RouteAnswer<string>): Json {
  const named = [
    ...(withHeaders === true ? Object.keys(rateLimitHeaders) : []).map((name) => [
      name,
      { $ref: `#/components/headers/${name}` },
    ]),
    ...Object.entries(headers).map(([name, text]) => [name, { description: text, schema: words }]),
  ];
  return {
    description,
    ...(named.length > 0 && { headers: Object.fromEntries(named) }),
    ...(content !== "nothing" && {
      content: {
        ...renderContent(content),
        ...(alsoText === true && renderContent("text/plain")),
        ...(alsoCsv === true && { "text/csv": { schema: words } }),
      },
    }),
  };
}

function renderContent(content: Exclude<RouteAnswer<string>["content"], "nothing">): Json {
  if (content === "text/plain" || content === "text/event-stream" || content === "application/yaml")
    return { [content]: { schema: { type: "string" } } };
  if (content === "application/json") return { [content]: { schema: { type: "object" } } };
  return { [contentType(content)]: { schema: oneOf(content.map(reference)) } };
}

function contentType(content: readonly string[]): string {
  return content.includes("Denial") ? problemType : "application/json";
}

function oneOf(all: readonly JsonSchema[]): JsonSchema {
  return all.length === 1 ? all[0]! : { oneOf: all };
}

function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** `POST /v1/rate-limit` is `postV1RateLimit`. */
function operationId({ method, path }: Pick<Route, "method" | "path">): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  return method.toLowerCase() + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}

const whole: JsonSchema = { type: "integer" };
const words: JsonSchema = { type: "string" };

/** The headers that report a decision, each if there is something to report. */
const rateLimitHeaders: Readonly<Record<string, Json>> = {
  "X-RateLimit-Limit": { description: "What the limiting window holds", schema: whole },
  "X-RateLimit-Remaining": { description: "What is left of it", schema: whole },
  "X-RateLimit-Reset": { description: "When it is full again, in epoch seconds", schema: whole },
  "X-RateLimit-Policy": { description: "The deciding policy", schema: words },
  "X-RateLimit-Scope": { description: "Its limit: the name, else the dimensions", schema: words },
  "X-RateLimit-Warning": { description: "How much is used, near the limit", schema: words },
  "X-RateLimit-Degraded": { description: "The counters were unavailable", schema: { const: "true" } },
  "X-RateLimit-Degraded-Reason": { description: "Why not", schema: words },
  "RateLimit-Policy": { description: "The limit, as an IETF structured field", schema: words },
  RateLimit: { description: "How it stands, as an IETF structured field", schema: words },
  "Retry-After": { description: "Seconds to wait after a denial, if waiting helps", schema: whole },
};
