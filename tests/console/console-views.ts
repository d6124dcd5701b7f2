import type { Page } from "playwright-core";
import type { ConsoleWorld } from "./world/start-console-world.ts";

/** A view as it is shown to people: where it is, and when it is complete. */
export interface ConsoleView {
  readonly name: string;
  readonly path: string;
  ready(page: Page): Promise<unknown>;
}

const heading = (name: string | RegExp) => (page: Page) => page.getByRole("heading", { level: 1, name }).waitFor();
const why = "/why?request=tenant%3Dacme+method%3DGET+endpoint%3D%2Fv1%2Fsearch+user%3Dacme-user-0";

/** Every view once, with something to show. */
export async function consoleViews({ admin }: ConsoleWorld): Promise<readonly ConsoleView[]> {
  const rollouts = await admin.rollouts.list().toArray();
  const rollout = rollouts[0]?.id;
  const { items: simulations } = await admin.simulations.list();
  const simulation = simulations[0]?.id;
  const views: ConsoleView[] = [
    { name: "overview", path: "/", ready: (page) => page.getByText(/^this second, on berlin/).waitFor() },
    {
      name: "policies",
      path: "/policies",
      ready: (page) => page.getByRole("link", { name: "search", exact: true }).waitFor(),
    },
    { name: "policy", path: "/policies/search", ready: heading(/search/) },
    { name: "edit", path: "/policies/search/edit", ready: heading(/search/) },
    { name: "plans", path: "/plans", ready: heading("Plans") },
    {
      name: "subjects",
      path: "/subjects",
      ready: (page) => page.getByRole("table", { name: "Subjects" }).getByRole("row").nth(1).waitFor(),
    },
    {
      name: "subject",
      path: "/subjects/tenant/acme",
      ready: (page) => page.getByRole("region", { name: "Counters" }).getByText("60/m").waitFor(),
    },
    { name: "denials", path: "/denials", ready: (page) => page.getByText("limit of 60/m reached").first().waitFor() },
    { name: "why", path: why, ready: (page) => page.getByRole("region", { name: "Decision" }).waitFor() },
    { name: "live", path: "/live", ready: (page) => page.getByText(/shown of \d+ decided by/).waitFor() },
    { name: "what-if", path: "/what-if", ready: heading("What if") },
    { name: "rollouts", path: "/rollouts", ready: (page) => page.getByRole("region", { name: "Ended" }).waitFor() },
    {
      name: "hot-keys",
      path: "/hot-keys",
      ready: (page) => page.getByRole("table", { name: "Hot keys" }).getByRole("row").nth(1).waitFor(),
    },
    {
      name: "operations",
      path: "/operations",
      ready: (page) => page.getByRole("region", { name: "Nodes" }).getByText("berlin-1").waitFor(),
    },
    { name: "access", path: "/access", ready: (page) => page.getByText("viewer-of-the-shop").waitFor() },
    { name: "audit", path: "/audit", ready: (page) => page.getByRole("table", { name: "Audit" }).waitFor() },
  ];
  if (rollout !== undefined) views.push({ name: "rollout", path: `/rollouts/${rollout}`, ready: heading(/version/) });
  if (simulation !== undefined)
    views.push({
      name: "what-if-result",
      path: `/what-if?simulation=${simulation}`,
      ready: (page) => page.getByRole("figure", { name: /^Requests, and those denied/ }).waitFor(),
    });
  return views;
}
