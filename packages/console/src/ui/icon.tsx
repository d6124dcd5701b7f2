import type { ReactNode } from "react";

/** Drawn on a grid of 24 by 24, as strokes. Hand-picked: a library of icons would weigh more than the console. */
const shapes = {
  overview: "M3 12h4l3-8 4 16 3-8h4",
  policies: "M8 3h8l4 4v14H4V3h4M8 11h8M8 15h8",
  plans: "M12 3 3 8l9 5 9-5-9-5M3 13l9 5 9-5",
  subject: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4 21c0-4 4-6 8-6s8 2 8 6",
  why: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 17.5v.5M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18",
  live: "M4 12a8 8 0 0 1 16 0M7 12a5 5 0 0 1 10 0M12 12v8M12 12h.01",
  rollout: "M4 20h4v-5H4v5M10 20h4V10h-4v10M16 20h4V4h-4v16",
  simulate: "M5 3h14M5 21h14M7 3v4l5 5 5-5V3M7 21v-4l5-5 5 5v4",
  hot: "M12 3c1 4 5 5 5 10a5 5 0 0 1-10 0c0-2 1-3 2-4 0 2 1 3 2 3 0-3-1-5 1-9",
  operations: "M4 6h10M18 6h2M4 12h2M10 12h10M4 18h8M16 18h4M16 4v4M8 10v4M14 16v4",
  access: "M7 14a4 4 0 1 1 3.5-6H21v4h-3v3h-3v-3h-4.5A4 4 0 0 1 7 14M7 10h.01",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14M16 16l5 5",
  close: "M5 5l14 14M19 5 5 19",
  check: "M4 12.5 9.5 18 20 6.5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  download: "M12 3v12M7 11l5 5 5-5M4 20h16",
  down: "M5 9l7 7 7-7",
  right: "M9 5l7 7-7 7",
  up: "M5 15l7-7 7 7",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  edit: "M4 20h4L20 8l-4-4L4 16v4M14 6l4 4",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v6M14 11v6",
  undo: "M9 5 4 10l5 5M4 10h10a6 6 0 0 1 0 12h-3",
  pause: "M8 5v14M16 5v14",
  play: "M7 4l12 8-12 8V4",
  warning: "M12 4 2.5 20h19L12 4M12 10v4M12 17h.01",
  info: "M12 11v6M12 7.5h.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18",
  denied: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18M6 6l12 12",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8M12 2v2M12 20v2M4 12H2M22 12h-2M5 5l1.5 1.5M17.5 17.5 19 19M19 5l-1.5 1.5M6.5 17.5 5 19",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5",
  system: "M4 4h16v12H4zM9 20h6M12 16v4",
  menu: "M4 6h16M4 12h16M4 18h16",
  leave: "M15 4h5v16h-5M10 8l-4 4 4 4M6 12h10",
  external: "M14 4h6v6M20 4l-9 9M10 5H4v15h15v-6",
  node: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  history: "M4 5v5h5M4.5 10a8 8 0 1 1-.5 4M12 8v5l3 2",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18M12 7v5l3.5 2",
  upload: "M12 16V4M7 8l5-5 5 5M4 20h16",
  refresh: "M20 5v5h-5M19.5 10A8 8 0 1 0 20 14",
  block: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6l8-3M9 9l6 6M15 9l-6 6",
  filter: "M3 5h18l-7 8v6l-4 2v-8L3 5",
} as const;

export type IconName = keyof typeof shapes;

/** Decoration: what it stands for is written next to it, or in the label of its button. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): ReactNode {
  return (
    <svg
      aria-hidden="true"
      className="shrink-0"
      fill="none"
      height={size}
      stroke="currentColor"
      strokeLinecap="round"
      strokeLinejoin="round"
      strokeWidth={1.8}
      viewBox="0 0 24 24"
      width={size}
    >
      <path d={shapes[name]} />
    </svg>
  );
}
