import { limitOwnApi, type OwnLimits } from "../../data-plane/access/limit-own-api.ts";
import { createRouteServer, type Patience } from "../../data-plane/transports/http/route-server.ts";
import type { Transport } from "../../data-plane/transports/transport.ts";
import { createSessions } from "../sessions/sessions.ts";
import { SignInCodes } from "../sessions/sign-in-codes.ts";
import { createAdmit } from "./admit.ts";
import { createPageAnswer } from "./browser/answer-page.ts";
import { type BrowserGuardOptions, createBrowserGuard } from "./browser/browser-guard.ts";
import type { ConsoleFiles } from "./browser/console-files.ts";
import { renderDeprecation } from "./deprecation.ts";
import type { AdminContext, AdminRoute } from "./route.ts";
import { nativeAdminRoutes, withServerRoutes } from "./routes.ts";
import { nativeAdminApi } from "./schemas.ts";

/** What the admin port has for browsers. */
export interface ConsoleOptions extends BrowserGuardOptions {
  /** `missing`: the console is not built, and a page says so. `off`: there is no page. */
  readonly files: ConsoleFiles | "missing" | "off";
  /** Codes that sign in once. */
  readonly codes: SignInCodes;
}

export interface AdminServerOptions extends Patience {
  /** Absent: the native API alone. */
  readonly routes?: readonly AdminRoute[] | undefined;
  /** Shared with the other APIs of the control plane. Absent: a separate one. */
  readonly ownLimits?: OwnLimits | undefined;
  /** Absent: no page. */
  readonly console?: ConsoleOptions | undefined;
}

const nativeApi = withServerRoutes(nativeAdminRoutes, nativeAdminApi);

/** Headers for browsers on every answer: it is data, not to be framed, and its type is not to be guessed. */
const always: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
};

/** The control plane over HTTP/1.1, served from its table of routes. */
export function createAdminServer(
  service: Omit<AdminContext, "sessions" | "guard">,
  options: AdminServerOptions = {},
): Promise<Transport> {
  const { routes = nativeApi, ownLimits: limits = limitOwnApi(), console: page, ...patience } = options;
  const { files, codes, ...hosts } = page ?? { files: "off" as const, codes: new SignInCodes() };
  const guard = createBrowserGuard(hosts);
  const { access, control, log } = service;
  const context = { ...service, guard, sessions: createSessions({ access, control, limits, codes, log }) };
  const admit = createAdmit(context, { limits, guard });
  const answerOther = files === "off" ? undefined : createPageAnswer({ guard, files });
  return createRouteServer({ protocol: "admin", routes, context, admit, headersFor, answerOther, ...patience });
}

function headersFor(route: AdminRoute | undefined): Readonly<Record<string, string>> {
  return route?.deprecated === undefined ? always : { ...always, ...renderDeprecation(route.deprecated) };
}
