import type { JsonSchema, Shape } from "sluice/shape";
import type { Permission } from "../../access/roles.ts";
import type { Handler, HttpContext } from "./exchange.ts";
import type { BodyType } from "./read-body.ts";
import type { SchemaName } from "./schemas.ts";

/**
 * One entry of a route table: the request, its handler, and its documentation. `Context` is what handlers can use,
 * `Name` the names of documented answer schemas.
 */
export interface Route<Context = HttpContext, Name extends string = SchemaName> {
  /** `GET` answers HEAD as well. */
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Methods that are answered like the first, and not documented separately. */
  readonly alsoMethods?: readonly string[];
  /** `{id}` stands for any text without a slash, which is written as `%2F`. */
  readonly path: string;
  readonly summary: string;
  readonly handle: Handler<Context>;
  /**
   * Whether it is asked so often that requests which arrive whole do without Node's parser and response. Every answer
   * must have a body or be a 204, and nothing of a header may be kept.
   */
  readonly isHot?: boolean | undefined;
  /** The permission that a caller needs; `nothing` for what load balancers ask. */
  readonly needs: Permission | "nothing";
  /** The shapes that a body may have. Absent if there is none. */
  readonly bodies?: readonly Shape<unknown>[];
  /** Whether a body must be there. Absent: yes. */
  readonly bodyOptional?: boolean | undefined;
  /** The formats of a body. Absent: JSON. `untyped`: JSON, whatever its content type says. */
  readonly bodyTypes?: readonly BodyType[] | "untyped" | undefined;
  /** Whether the handler gets the body as text, in `yaml`, whatever its format: JSON is YAML, too. */
  readonly bodyAsText?: boolean | undefined;
  /** Request headers that are read, and their purpose. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query: their meaning, or their schema with it. */
  readonly query?: Readonly<Record<string, string | JsonSchema>>;
  /** The meaning of path parameters, if documented. */
  readonly pathParameters?: Readonly<Record<string, string>>;
  /** Whether the documentation points callers to something else. */
  readonly isDeprecated?: boolean | undefined;
  /** Absent: 64 KiB. */
  readonly maxBodyBytes?: number;
  /** Successful answers, by status. Errors are the same everywhere. */
  readonly answers: Readonly<Record<number, RouteAnswer<Name>>>;
}

export interface RouteAnswer<Name extends string = SchemaName> {
  readonly description: string;
  /** One of these schemas, or text of another type, or no body. */
  readonly content:
    | readonly Name[]
    | "text/plain"
    | "text/event-stream"
    | "application/json"
    | "application/yaml"
    | "nothing";
  /** Whether it is also available as text, for clients that accept only that. */
  readonly alsoText?: boolean;
  /** Whether it is also available as CSV, for clients that ask for it. */
  readonly alsoCsv?: boolean;
  readonly rateLimitHeaders?: boolean;
  /** Further headers of the answer, and their meaning. */
  readonly headers?: Readonly<Record<string, string>>;
}
