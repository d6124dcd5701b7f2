import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
  useLocation,
  useRouter,
} from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { sessionQuery } from "../session/session.ts";
import { useSession } from "../session/use-session.ts";
import { EmptyState } from "../ui/empty-state.tsx";
import { ErrorNotice } from "../ui/error-notice.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { hasCode } from "../url/one-time-code.ts";
import { parseAuditSearch } from "../views/audit/audit-search.ts";
import { parseDenialsSearch } from "../views/denials/denials-search.ts";
import { parseHotKeysSearch } from "../views/hot-keys/hot-keys-search.ts";
import { parseOverviewSearch } from "../views/overview/overview-search.ts";
import { parsePlanSearch } from "../views/plans/plan-search.ts";
import { parsePoliciesSearch } from "../views/policies/policies-search.ts";
import { parsePolicySearch } from "../views/policy/policy-search.ts";
import { parseSignInSearch } from "../views/sign-in/sign-in-search.ts";
import { parseSubjectSearch } from "../views/subject/subject-search.ts";
import { parseSubjectsSearch } from "../views/subject/subjects-search.ts";
import { parseTailSearch } from "../views/tail/tail-search.ts";
import { parseWhatIfSearch } from "../views/what-if/what-if-search.ts";
import { parseWhySearch } from "../views/why/why-search.ts";
import { Shell } from "./shell.tsx";

/**
 * Every view: its path, how its part of the address is read, and the file with the view, which is loaded when it is first shown.
 * The address is the state: filters, ranges and tabs are in it, so a link shows what its sender saw.
 */
const root = createRootRouteWithContext<{ readonly queries: QueryClient }>()({ component: Outlet });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: parseSignInSearch,
  component: lazyRouteComponent(() => import("../views/sign-in/sign-in-view.tsx")),
});

/** What needs a session. Without one, the sign-in view comes first and leads back here. */
const shell = createRoute({
  getParentRoute: () => root,
  id: "shell",
  beforeLoad: async ({ context, location }) => {
    if (hasCode()) throw redirect({ to: "/sign-in", search: { to: location.href } });
    const session = await context.queries.ensureQueryData({ ...sessionQuery, revalidateIfStale: true });
    if (session === null) throw redirect({ to: "/sign-in", search: { to: location.href } });
  },
  component: ShellView,
});

/** A session may end while its view is shown: nothing of the shell stays that would ask the server. */
function ShellView(): ReactNode {
  const { pathname } = useLocation();
  const router = useRouter();
  const isOver = useSession() === null;
  useEffect(() => {
    if (isOver) void router.invalidate();
  }, [isOver, router]);
  return isOver ? null : <Shell path={pathname} />;
}

const overview = createRoute({
  getParentRoute: () => shell,
  path: "/",
  validateSearch: parseOverviewSearch,
  component: lazyRouteComponent(() => import("../views/overview/overview-view.tsx")),
});

const policies = createRoute({
  getParentRoute: () => shell,
  path: "/policies",
  validateSearch: parsePoliciesSearch,
  component: lazyRouteComponent(() => import("../views/policies/policies-view.tsx")),
});

const newPolicy = createRoute({
  getParentRoute: () => shell,
  path: "/policies/new",
  component: lazyRouteComponent(() => import("../views/editor/new-policy-view.tsx")),
});

const policy = createRoute({
  getParentRoute: () => shell,
  path: "/policies/$id",
  validateSearch: parsePolicySearch,
  component: lazyRouteComponent(() => import("../views/policy/policy-view.tsx")),
});

const editPolicy = createRoute({
  getParentRoute: () => shell,
  path: "/policies/$id/edit",
  component: lazyRouteComponent(() => import("../views/editor/edit-policy-view.tsx")),
});

const plans = createRoute({
  getParentRoute: () => shell,
  path: "/plans",
  validateSearch: parsePlanSearch,
  component: lazyRouteComponent(() => import("../views/plans/plans-view.tsx")),
});

const subjects = createRoute({
  getParentRoute: () => shell,
  path: "/subjects",
  validateSearch: parseSubjectsSearch,
  component: lazyRouteComponent(() => import("../views/subject/subjects-view.tsx")),
});

const subject = createRoute({
  getParentRoute: () => shell,
  path: "/subjects/$kind/$value",
  validateSearch: parseSubjectSearch,
  component: lazyRouteComponent(() => import("../views/subject/subject-view.tsx")),
});

const why = createRoute({
  getParentRoute: () => shell,
  path: "/why",
  validateSearch: parseWhySearch,
  component: lazyRouteComponent(() => import("../views/why/why-view.tsx")),
});

const denials = createRoute({
  getParentRoute: () => shell,
  path: "/denials",
  validateSearch: parseDenialsSearch,
  component: lazyRouteComponent(() => import("../views/denials/denials-view.tsx")),
});

const tail = createRoute({
  getParentRoute: () => shell,
  path: "/live",
  validateSearch: parseTailSearch,
  component: lazyRouteComponent(() => import("../views/tail/tail-view.tsx")),
});

const rollouts = createRoute({
  getParentRoute: () => shell,
  path: "/rollouts",
  component: lazyRouteComponent(() => import("../views/rollout/rollouts-view.tsx")),
});

const rollout = createRoute({
  getParentRoute: () => shell,
  path: "/rollouts/$id",
  component: lazyRouteComponent(() => import("../views/rollout/rollout-view.tsx")),
});

const hotKeys = createRoute({
  getParentRoute: () => shell,
  path: "/hot-keys",
  validateSearch: parseHotKeysSearch,
  component: lazyRouteComponent(() => import("../views/hot-keys/hot-keys-view.tsx")),
});

const operations = createRoute({
  getParentRoute: () => shell,
  path: "/operations",
  component: lazyRouteComponent(() => import("../views/operations/operations-view.tsx")),
});

const access = createRoute({
  getParentRoute: () => shell,
  path: "/access",
  component: lazyRouteComponent(() => import("../views/access/access-view.tsx")),
});

const audit = createRoute({
  getParentRoute: () => shell,
  path: "/audit",
  validateSearch: parseAuditSearch,
  component: lazyRouteComponent(() => import("../views/audit/audit-view.tsx")),
});

const whatIf = createRoute({
  getParentRoute: () => shell,
  path: "/what-if",
  validateSearch: parseWhatIfSearch,
  component: lazyRouteComponent(() => import("../views/what-if/what-if-view.tsx")),
});

const tree = root.addChildren([
  signIn,
  shell.addChildren([
    overview,
    policies,
    newPolicy,
    policy,
    editPolicy,
    plans,
    whatIf,
    subjects,
    subject,
    why,
    denials,
    tail,
    rollouts,
    rollout,
    hotKeys,
    operations,
    access,
    audit,
  ]),
]);

export function createConsoleRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    defaultPendingComponent: () => <SkeletonRows />,
    defaultErrorComponent: ({ error, reset }) => (
      <div className="p-6">
        <ErrorNotice error={error} onRetry={reset} what="This view cannot be shown" />
      </div>
    ),
    defaultNotFoundComponent: () => (
      <EmptyState title="There is no such view">Check the address, or choose a view from the navigation.</EmptyState>
    ),
    // Parameters are plain texts: `?q=42` is the text 42.
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const entries = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
      const text = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
      return text === "" ? "" : `?${text}`;
    },
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>;
  }
}
