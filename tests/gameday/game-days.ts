import { chaosDay } from "./chaos-day.ts";
import { clockDay } from "./clock-day.ts";
import { diskFullDay } from "./disk-full-day.ts";
import type { GameDay } from "./game-day.ts";
import { killSwitchDay } from "./kill-switch-day.ts";
import { rolloutDay } from "./rollout-day.ts";
import { soakDay } from "./soak-day.ts";
import { storeLostDay } from "./store-lost-day.ts";
import { trafficShapesDay } from "./traffic-shapes-day.ts";
import { upgradeDay } from "./upgrade-day.ts";
import { whaleDay } from "./whale-day.ts";

export const gameDays: readonly GameDay[] = [
  chaosDay,
  whaleDay,
  trafficShapesDay,
  rolloutDay,
  killSwitchDay,
  storeLostDay,
  upgradeDay,
  clockDay,
  diskFullDay,
  soakDay,
];
