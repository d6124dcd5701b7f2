import { described, objectOf, refine, type Shape, text } from "sluice/shape";
import type { SignInWith } from "../../sessions/sessions.ts";
import { consoleHeader } from "../browser/browser-guard.ts";
import { createSessionCode, endSession, showSession, startSession } from "../handlers/session.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

/** Longer than any token or code of ours. */
const secret = text({ max: 512 });

const signIn: Shape<SignInWith> = refine(
  objectOf(
    {},
    {
      token: described(secret, "A token of role viewer, editor, operator or admin."),
      code: described(secret, "The code of a link to the console."),
    },
  ),
  ({ token, code }, reading) => {
    if (token !== undefined && code === undefined) return { token };
    if (code !== undefined && token === undefined) return { code };
    return reading.problem("must have either token or code");
  },
);

const marked = { [consoleHeader]: "Must be there, with any value: a form of another site cannot send it" };

export const sessionRoutes: readonly AdminRoute[] = [
  {
    ...adminRoute({
      method: "POST",
      path: "/api/v1/session",
      summary: "Sign in a browser with a token or the code of a link",
      action: "session.start",
      needs: "nothing",
      access: "read",
      body: signIn,
      answers: {
        200: {
          description: "Signed in",
          content: ["Session"],
          headers: {
            "Set-Cookie": "The session. Scripts cannot read it; it ends with the token, or after twelve hours",
          },
        },
      },
      handle: startSession,
    }),
    headers: marked,
  },
  {
    ...adminRoute({
      method: "GET",
      path: "/api/v1/session",
      summary: "Show who is signed in, and what it may do",
      action: "session.get",
      needs: "read",
      answers: { 200: { description: "The session", content: ["Session"] } },
      handle: showSession,
    }),
    asksWho: true,
  },
  {
    ...adminRoute({
      method: "DELETE",
      path: "/api/v1/session",
      summary: "Sign out",
      action: "session.end",
      needs: "nothing",
      access: "read",
      answers: {
        204: { description: "Signed out", content: "nothing", headers: { "Set-Cookie": "Deletes the session" } },
      },
      handle: endSession,
    }),
    headers: marked,
  },
  adminRoute({
    method: "POST",
    path: "/api/v1/session/codes",
    summary: "Make a code that signs in a browser once, with the rights of the caller",
    action: "session.code",
    needs: "read",
    access: "read",
    answers: { 201: { description: "The code", content: ["SessionCode"] } },
    handle: createSessionCode,
  }),
];
