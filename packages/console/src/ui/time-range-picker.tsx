import type { ReactNode } from "react";
import { type TimeRange, timeRanges } from "../url/time-range.ts";
import { Segmented } from "./segmented.tsx";

const options = (Object.keys(timeRanges) as TimeRange[]).map((value) => ({
  value,
  label: value.replace("m", " m").replace("h", " h").replace("d", " d"),
}));

export function TimeRangePicker({
  value,
  onChange,
}: {
  readonly value: TimeRange;
  readonly onChange: (range: TimeRange) => void;
}): ReactNode {
  return <Segmented label="Time range" onChange={onChange} options={options} value={value} />;
}
