import type { IconName } from "../ui/icon.tsx";

export interface NavigationEntry {
  readonly path: string;
  readonly label: string;
  readonly icon: IconName;
  /** Further words by which the palette finds it. */
  readonly words: string;
}

export interface NavigationGroup {
  readonly label: string;
  readonly entries: readonly NavigationEntry[];
}

/** The views that the navigation and the palette list. A view that belongs to a policy or a subject is reached from there. */
export const navigation: readonly NavigationGroup[] = [
  {
    label: "Limits",
    entries: [
      { path: "/", label: "Overview", icon: "overview", words: "home dashboard traffic latency health" },
      { path: "/policies", label: "Policies", icon: "policies", words: "limits rules list" },
      { path: "/plans", label: "Plans", icon: "plans", words: "tiers free pro pricing" },
    ],
  },
  {
    label: "Callers",
    entries: [
      {
        path: "/subjects",
        label: "Subjects",
        icon: "subject",
        words: "tenants users keys who customer override block",
      },
      { path: "/denials", label: "Denials", icon: "denied", words: "refused 429 blocked list export" },
      { path: "/why", label: "Why", icon: "why", words: "explain request arithmetic decision" },
      { path: "/live", label: "Live tail", icon: "live", words: "stream decisions now watch" },
    ],
  },
  {
    label: "Changes",
    entries: [
      {
        path: "/what-if",
        label: "What if",
        icon: "simulate",
        words: "simulate simulation replay recording log effect",
      },
      { path: "/rollouts", label: "Rollouts", icon: "rollout", words: "canary steps percent old new" },
      { path: "/audit", label: "Audit", icon: "history", words: "history who changed refused export" },
    ],
  },
  {
    label: "System",
    entries: [
      { path: "/hot-keys", label: "Hot keys", icon: "hot", words: "busiest top leases counters" },
      {
        path: "/operations",
        label: "Operations",
        icon: "operations",
        words: "nodes kill switch breaker sinks runbook status",
      },
      { path: "/access", label: "Access", icon: "access", words: "tokens roles revoke team" },
    ],
  },
];
