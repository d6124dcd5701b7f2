import { chaosDay } from "./chaos-day.ts";
import { clockDay } from "./clock-day.ts";
import { diskFullDay } from "./disk-full-day.ts";
import type { GameDay } from "./game-day.ts";
import { soakDay } from "./soak-day.ts";
import { trafficShapesDay } from "./traffic-shapes-day.ts";
import { whaleDay } from "./whale-day.ts";

export const gameDays: readonly GameDay[] = [chaosDay, whaleDay, trafficShapesDay, clockDay, diskFullDay, soakDay];
