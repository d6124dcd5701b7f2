import { livez } from "../../../data-plane/transports/http/handlers/livez.ts";
import { readyz, strictQuery } from "../../../data-plane/transports/http/handlers/readyz.ts";
import { type OpenApiOptions, renderOpenApi } from "../../../data-plane/transports/http/render-open-api.ts";
import type { AdminRoute } from "../route.ts";

/** Routes that need no token. Takes the whole table as a function, because the table contains them. */
export function serverRoutes(routes: () => readonly AdminRoute[], api: OpenApiOptions): readonly AdminRoute[] {
  let document: string | undefined;
  return [
    {
      method: "GET",
      path: "/livez",
      summary: "Check that the process is alive",
      action: "server.live",
      access: "read",
      needs: "nothing",
      answers: { 200: { description: "The process is alive", content: ["Live"] } },
      handle: livez,
    },
    {
      method: "GET",
      path: "/readyz",
      summary: "Check that the server is ready for requests",
      action: "server.ready",
      access: "read",
      needs: "nothing",
      query: strictQuery,
      answers: {
        200: { description: "Ready", content: ["Ready"] },
        503: {
          description: "Not ready: the server is stopping, or with `strict` its counters cannot be reached",
          content: ["Ready"],
        },
      },
      handle: readyz,
    },
    {
      method: "GET",
      path: "/openapi.json",
      summary: "Show this OpenAPI description",
      action: "server.describe",
      access: "read",
      needs: "nothing",
      answers: { 200: { description: "OpenAPI 3.1", content: "application/json" } },
      handle: (_request, { version }) => {
        document ??= JSON.stringify(renderOpenApi(routes(), version, api));
        return { status: 200, body: document };
      },
    },
  ];
}
