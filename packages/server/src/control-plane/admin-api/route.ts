import { type Problem, SluiceError } from "sluice";
import { maxDimensionLength } from "sluice/internal";
import { parseShape, type Shape } from "sluice/shape";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Permission } from "../../data-plane/access/roles.ts";
import type { Service } from "../../data-plane/service/service.ts";
import type {
  Credential,
  HttpRequest,
  HttpResponse,
  PathParameters,
  RequestHeaders,
} from "../../data-plane/transports/http/exchange.ts";
import type { BodyType } from "../../data-plane/transports/http/read-body.ts";
import { type QueryShapes, type ReadQuery, readQuery } from "../../data-plane/transports/http/read-query.ts";
import { requestActor } from "../../data-plane/transports/http/request-actor.ts";
import type { Route, RouteAnswer } from "../../data-plane/transports/http/route.ts";
import type { ExpectingOptions } from "../change.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { LiveStreams } from "../live/live-streams.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { BrowserGuard } from "./browser/browser-guard.ts";
import { type Deprecation, renderDeprecation } from "./deprecation.ts";
import { dryRun, why } from "./query-parameters.ts";
import { type BodyText, readBodyText } from "./read-body-text.ts";
import { type Expects, readExpected } from "./read-expected.ts";

/** Everything that handlers of the control plane may use. */
export interface AdminContext extends Service {
  readonly control: ControlPlane;
  readonly sessions: Sessions;
  readonly guard: BrowserGuard;
  readonly live: LiveStreams;
}

/** One entry of the control plane's route table, ready to be served. */
export interface AdminRoute extends Route<AdminContext, string> {
  /** Its name in the audit when it is refused: `policy.put`. The part before the dot is the kind of its target. */
  readonly action: string;
  /** Whether it counts as a read or as a write, even in a dry run. */
  readonly access: "read" | "write";
  /** What it counts as, of the reads and writes of a token. Absent: as its access. */
  readonly counts?: "write" | undefined;
  /** Whether pages ask it to find out if they are signed in: without a token it is refused, which is no failed log-in. */
  readonly asksWho?: boolean | undefined;
  readonly deprecated?: Deprecation | undefined;
}

/** A request whose parts have been parsed and validated as the table describes. */
export interface AdminRequest<Body = undefined, Query = unknown> {
  readonly actor: Actor;
  /** How the actor proved who it is; undefined if the route needs nothing. */
  readonly credential: Credential | undefined;
  readonly socket: HttpRequest["socket"];
  readonly params: PathParameters;
  readonly query: Query;
  readonly body: Body;
  /** For a write: `dry_run` and `why`, and if the route expects it the version that the caller saw. */
  readonly change: ExpectingOptions;
  /** Whether the caller accepts any version. */
  readonly anyVersion: boolean;
  /** Path and query, as received. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** The body as received, if it was YAML or the handler parses it. */
  readonly yaml: string | undefined;
  /** Problems with the content of the body, each with its line and column if it was YAML. */
  placed(problems: readonly Problem[]): Promise<readonly Problem[]>;
}

/** A row of a table of routes. */
export interface AdminRouteRow<Body, Query extends QueryShapes> {
  readonly method: Route["method"];
  readonly path: string;
  readonly summary: string;
  readonly action: string;
  readonly needs: Permission | "nothing";
  /** Absent: `read` for GET, `write` for the others. Writes always take `dry_run` and `why`. */
  readonly access?: AdminRoute["access"] | undefined;
  readonly counts?: AdminRoute["counts"];
  /** Whether `If-Match` and `If-None-Match` are read. Other routes refuse them instead of ignoring them silently. */
  readonly expects?: Expects | undefined;
  /** A `why` or `expected_version` in the body applies to the change. */
  readonly body?: Shape<Body> | undefined;
  /** Without a body, the handler receives `{}` parsed by the shape. */
  readonly bodyOptional?: boolean | undefined;
  readonly bodyTypes?: readonly BodyType[] | undefined;
  /** The handler parses the body, from `yaml`. */
  readonly bodyUnread?: boolean | undefined;
  readonly maxBodyBytes?: number | undefined;
  readonly query?: Query | undefined;
  readonly pathParameters?: Readonly<Record<string, string>> | undefined;
  readonly answers: Readonly<Record<number, RouteAnswer<string>>>;
  readonly deprecated?: Deprecation | undefined;
  readonly handle: (
    request: AdminRequest<Body, ReadQuery<Query>>,
    context: AdminContext,
  ) => HttpResponse | Promise<HttpResponse>;
}

const changeQuery = { dry_run: dryRun, why } satisfies QueryShapes;

/** Makes a route of a row of a table: its handler is called with everything parsed. */
export function adminRoute<Body = undefined, const Query extends QueryShapes = Readonly<Record<never, never>>>(
  words: AdminRouteRow<Body, Query>,
): AdminRoute {
  const { body: shape, query = {} as Query, expects = false, handle, ...rest } = words;
  const { bodyOptional, bodyUnread, maxBodyBytes } = words;
  const access = words.access ?? (words.method === "GET" ? "read" : "write");
  const known: QueryShapes = access === "write" ? { ...query, ...changeQuery } : query;
  return {
    method: rest.method,
    path: rest.path,
    summary: rest.summary,
    action: rest.action,
    needs: rest.needs,
    answers: rest.answers,
    deprecated: rest.deprecated,
    bodyTypes: rest.bodyTypes,
    bodyAsText: bodyUnread,
    ...(rest.pathParameters !== undefined && { pathParameters: rest.pathParameters }),
    access,
    counts: words.counts,
    query: Object.fromEntries(Object.entries(known).map(([name, { schema }]) => [name, schema])),
    ...(expects !== false && { headers: expects === true ? expectedHeaders : expectedOrAnyHeaders }),
    ...(shape !== undefined && { bodies: [shape], bodyOptional }),
    ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    isDeprecated: words.deprecated !== undefined,
    async handle(request: HttpRequest, context: AdminContext): Promise<HttpResponse> {
      if (shape === undefined && access === "write") refuseBody(request);
      const asked = readQuery(known, request.url) as ReadQuery<Query> & ReadQuery<typeof changeQuery>;
      const { body, fields } = await readRequestBody(request, context, {
        shape: bodyUnread === true ? undefined : shape,
        optional: bodyOptional === true,
      });
      try {
        const expected = readExpected(request.headers, fields.expected_version, expects);
        const answered = await handle(
          {
            actor: requestActor(request),
            credential: request.credential,
            socket: request.socket,
            params: readParameters(request.params),
            query: asked,
            body: body as Body,
            change: {
              dryRun: asked.dry_run ?? false,
              why: asked.why ?? fields.why,
              expected: expected === "any" ? undefined : expected,
            },
            anyVersion: expected === "any",
            url: request.url,
            headers: request.headers,
            yaml: request.yaml,
            placed: fields.placed,
          },
          context,
        );
        return withSuccessor(answered, words.deprecated);
      } catch (error) {
        throw await withPlaces(error, fields.placed);
      }
    },
  };
}

/** Throws `invalid_request` for a body that is not read: it may contain the version that the caller saw. */
function refuseBody({ headers }: HttpRequest): void {
  const { "content-length": length = "0", "transfer-encoding": encoding } = headers;
  if (length === "0" && encoding === undefined) return;
  const message = "must be empty here: send If-Match for the version that you saw, and why in the query";
  throw new SluiceError("invalid_request", `the body ${message}`, [{ path: [], message }]);
}

/** An answer's own link goes before the one of the deprecation, and does not replace it. */
function withSuccessor(answered: HttpResponse, deprecated: Deprecation | undefined): HttpResponse {
  const { link } = answered.headers ?? {};
  if (deprecated === undefined || link === undefined) return answered;
  return { ...answered, headers: { ...answered.headers, link: `${link}, ${renderDeprecation(deprecated).link}` } };
}

async function withPlaces(error: unknown, placed: BodyText["placed"]): Promise<unknown> {
  if (!(error instanceof SluiceError) || error.problems.length === 0) return error;
  return new SluiceError(error.code, error.message, await placed(error.problems));
}

/** Throws `invalid_request` if a part of the path is longer than any name or value of ours. */
function readParameters(params: PathParameters): PathParameters {
  const problems = Object.entries(params)
    .filter(([, value]) => value === "" || value.length > maxDimensionLength)
    .map(([name]): Problem => ({ path: [name], message: `must have 1 to ${maxDimensionLength} characters` }));
  if (problems.length === 0) return params;
  throw new SluiceError("invalid_request", "a part of the path is too long, or empty", problems);
}

const expectedHeaders: Readonly<Record<string, string>> = {
  "If-Match": 'The version that you saw, in quotes: "3". If it is not the current one, the answer is 409',
  "If-None-Match": "* to create, and never replace",
};

const expectedOrAnyHeaders: Readonly<Record<string, string>> = {
  ...expectedHeaders,
  "If-Match": `${expectedHeaders["If-Match"]}. * for any version`,
};

interface FieldsInBody extends Pick<BodyText, "placed"> {
  readonly why?: string | undefined;
  readonly expected_version?: number | undefined;
}

async function readRequestBody(
  request: HttpRequest,
  { control }: AdminContext,
  { shape, optional }: { readonly shape: Shape<unknown> | undefined; readonly optional: boolean },
): Promise<{ readonly body: unknown; readonly fields: FieldsInBody }> {
  if (shape === undefined) return { body: undefined, fields: { placed: async (problems) => problems } };
  const { contents, placed } = await readBodyText(request, control.texts);
  const given = contents === undefined && optional ? {} : contents;
  try {
    const body = parseShape(shape, given, "invalid_request", "the body");
    const fields = typeof body === "object" && body !== null ? (body as Partial<FieldsInBody>) : {};
    return { body, fields: { why: fields.why, expected_version: fields.expected_version, placed } };
  } catch (error) {
    throw await withPlaces(error, placed);
  }
}
