import { maxDimensionLength, type Problem, parseShape, type Shape, SluiceError } from "sluice";
import type { Actor } from "../../data-plane/access/actor.ts";
import type { Permission } from "../../data-plane/access/roles.ts";
import type { Service } from "../../data-plane/service/service.ts";
import { actorOf } from "../../data-plane/transports/http/actor-of.ts";
import type {
  HttpRequest,
  HttpResponse,
  PathParameters,
  RequestHeaders,
} from "../../data-plane/transports/http/exchange.ts";
import type { BodyType } from "../../data-plane/transports/http/read-body.ts";
import { type QueryShapes, type ReadQuery, readQuery } from "../../data-plane/transports/http/read-query.ts";
import type { Answer, Route } from "../../data-plane/transports/http/route.ts";
import type { ControlPlane, ExpectingOptions } from "../control-plane.ts";
import { type Deprecation, renderDeprecation } from "./deprecation.ts";
import { dryRun, why } from "./query-words.ts";
import { type BodyText, readBodyText } from "./read-body-text.ts";
import { type Expects, readExpected } from "./read-expected.ts";

/** What handlers of the control plane may ask. */
export interface AdminContext extends Service {
  readonly control: ControlPlane;
}

/** One entry of the control plane's route table, ready to be served. */
export interface AdminRoute extends Route<AdminContext, string> {
  /** What it is called in the audit when it is refused: `policy.put`. The part before the dot is what it is done to. */
  readonly action: string;
  /** Whether it counts as a read or as a write, also in a dry run. */
  readonly access: "read" | "write";
  readonly deprecated?: Deprecation | undefined;
}

/** A request, with all of it that the table describes read and checked. */
export interface AdminRequest<Body = undefined, Query = unknown> {
  readonly actor: Actor;
  readonly params: PathParameters;
  readonly query: Query;
  readonly body: Body;
  /** Of a write: `dry_run` and `why`, and where the route expects it the version that the caller saw. */
  readonly change: ExpectingOptions;
  /** Whether the caller says that the version may be any. */
  readonly anyVersion: boolean;
  /** Path and query, as they came. */
  readonly url: string;
  readonly headers: RequestHeaders;
  /** The body as it came, where that was YAML, or the handler reads it itself. */
  readonly yaml: string | undefined;
  /** Problems with what the body says, each with its line and column where that was YAML. */
  placed(problems: readonly Problem[]): Promise<readonly Problem[]>;
}

/** What a table says of a route. */
export interface AdminRouteWords<Body, Query extends QueryShapes> {
  readonly method: Route["method"];
  readonly path: string;
  readonly summary: string;
  readonly action: string;
  readonly needs: Permission | "nothing";
  /** Absent: `read` for GET, `write` for the others. Writes take `dry_run` and `why` without saying so. */
  readonly access?: AdminRoute["access"] | undefined;
  /** Whether `If-Match` and `If-None-Match` are looked at. Elsewhere they are refused, and not passed over in silence. */
  readonly expects?: Expects | undefined;
  /** A body that has `why` or `expected_version` says so for the change. */
  readonly body?: Shape<Body> | undefined;
  /** Without a body, the handler sees `{}` read by the shape. */
  readonly bodyOptional?: boolean | undefined;
  readonly bodyTypes?: readonly BodyType[] | undefined;
  /** The handler reads the body itself, from `yaml`. */
  readonly bodyUnread?: boolean | undefined;
  readonly maxBodyBytes?: number | undefined;
  readonly query?: Query | undefined;
  readonly pathParameters?: Readonly<Record<string, string>> | undefined;
  readonly answers: Readonly<Record<number, Answer<string>>>;
  readonly deprecated?: Deprecation | undefined;
  readonly handle: (
    request: AdminRequest<Body, ReadQuery<Query>>,
    context: AdminContext,
  ) => HttpResponse | Promise<HttpResponse>;
}

const changeQuery = { dry_run: dryRun, why } satisfies QueryShapes;

/** Makes an entry of what a table says: its handler is called with everything read. */
export function adminRoute<Body = undefined, const Query extends QueryShapes = Readonly<Record<never, never>>>(
  words: AdminRouteWords<Body, Query>,
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
    query: Object.fromEntries(Object.entries(known).map(([name, { schema }]) => [name, schema])),
    ...(expects !== false && { headers: expects === true ? expectedHeaders : expectedOrAnyHeaders }),
    ...(shape !== undefined && { bodies: [shape], bodyOptional }),
    ...(maxBodyBytes !== undefined && { maxBodyBytes }),
    isDeprecated: words.deprecated !== undefined,
    async handle(request: HttpRequest, context: AdminContext): Promise<HttpResponse> {
      if (shape === undefined && access === "write") refuseBody(request);
      const asked = readQuery(known, request.url) as ReadQuery<Query> & ReadQuery<typeof changeQuery>;
      const { body, told } = await readRequestBody(request, context, {
        shape: bodyUnread === true ? undefined : shape,
        optional: bodyOptional === true,
      });
      try {
        const expected = readExpected(request.headers, told.expected_version, expects);
        const answered = await handle(
          {
            actor: actorOf(request),
            params: readParameters(request.params),
            query: asked,
            body: body as Body,
            change: {
              dryRun: asked.dry_run ?? false,
              why: asked.why ?? told.why,
              expected: expected === "any" ? undefined : expected,
            },
            anyVersion: expected === "any",
            url: request.url,
            headers: request.headers,
            yaml: request.yaml,
            placed: told.placed,
          },
          context,
        );
        return withSuccessor(answered, words.deprecated);
      } catch (error) {
        throw await withPlaces(error, told.placed);
      }
    },
  };
}

/** Throws `invalid_request` where somebody says something in a body that is not read: the version that they saw, perhaps. */
function refuseBody({ headers }: HttpRequest): void {
  const { "content-length": length = "0", "transfer-encoding": encoding } = headers;
  if (length === "0" && encoding === undefined) return;
  const message = "must be empty here: send If-Match for the version that you saw, and why in the query";
  throw new SluiceError("invalid_request", `the body ${message}`, [{ path: [], message }]);
}

/** A link of an answer's own stands before the one of its deprecation, and not in its place. */
function withSuccessor(answered: HttpResponse, deprecated: Deprecation | undefined): HttpResponse {
  const { link } = answered.headers ?? {};
  if (deprecated === undefined || link === undefined) return answered;
  return { ...answered, headers: { ...answered.headers, link: `${link}, ${renderDeprecation(deprecated).link}` } };
}

async function withPlaces(error: unknown, placed: BodyText["placed"]): Promise<unknown> {
  if (!(error instanceof SluiceError) || error.problems.length === 0) return error;
  return new SluiceError(error.code, error.message, await placed(error.problems));
}

/** Throws `invalid_request` where what stands in the path is longer than any name or value of ours. */
function readParameters(params: PathParameters): PathParameters {
  const problems = Object.entries(params)
    .filter(([, value]) => value === "" || value.length > maxDimensionLength)
    .map(([name]): Problem => ({ path: [name], message: `must have 1 to ${maxDimensionLength} characters` }));
  if (problems.length === 0) return params;
  throw new SluiceError("invalid_request", "what stands in the path is too long, or empty", problems);
}

const expectedHeaders: Readonly<Record<string, string>> = {
  "If-Match": 'The version that you saw, in quotes: "3". Another one is answered 409',
  "If-None-Match": "*, for what is not there yet",
};

const expectedOrAnyHeaders: Readonly<Record<string, string>> = {
  ...expectedHeaders,
  "If-Match": `${expectedHeaders["If-Match"]}. *: whatever there is`,
};

interface ToldInBody extends Pick<BodyText, "placed"> {
  readonly why?: string | undefined;
  readonly expected_version?: number | undefined;
}

async function readRequestBody(
  request: HttpRequest,
  { control }: AdminContext,
  { shape, optional }: { readonly shape: Shape<unknown> | undefined; readonly optional: boolean },
): Promise<{ readonly body: unknown; readonly told: ToldInBody }> {
  if (shape === undefined) return { body: undefined, told: { placed: async (problems) => problems } };
  const { contents, placed } = await readBodyText(request, control.texts);
  const given = contents === undefined && optional ? {} : contents;
  try {
    const body = parseShape(shape, given, "invalid_request", "the body");
    const told = typeof body === "object" && body !== null ? (body as Partial<ToldInBody>) : {};
    return { body, told: { why: told.why, expected_version: told.expected_version, placed } };
  } catch (error) {
    throw await withPlaces(error, placed);
  }
}
