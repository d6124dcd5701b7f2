import type { Handler, HttpContext } from "../exchange.ts";
import { type OpenApiOptions, renderOpenApi } from "../render-open-api.ts";
import type { Route } from "../route.ts";

/** GET /openapi.json: the route table, for machines. Takes the table lazily, because it is part of it. */
export function openApi(routes: () => readonly Route<HttpContext, string>[], api: OpenApiOptions): Handler {
  let document: string | undefined;
  return (_request, { version }) => {
    document ??= JSON.stringify(renderOpenApi(routes(), version, api));
    return { status: 200, body: document };
  };
}
