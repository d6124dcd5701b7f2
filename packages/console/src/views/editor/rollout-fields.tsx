import type { RolloutRequestBody } from "@sluice/protocol/admin";
import { type ReactNode, useState } from "react";
import { Checkbox, TextField } from "../../ui/field.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { parseSteps } from "./parse-steps.ts";

export type Publishing = "at-once" | "in-steps";

export interface RolloutChoice {
  readonly publishing: Publishing;
  readonly steps: string;
  readonly shadow: boolean;
  readonly expectMoreDenials: boolean;
}

export const usualRollout: RolloutChoice = {
  publishing: "at-once",
  steps: "1% 10m, 10% 10m, 100%",
  shadow: false,
  expectMoreDenials: false,
};

/** Undefined: at once. Throws nothing; what cannot be read has an error. */
export function readRollout(choice: RolloutChoice): { readonly rollout?: RolloutRequestBody; readonly error?: string } {
  if (choice.publishing === "at-once") return {};
  const steps = parseSteps(choice.steps);
  if (typeof steps === "string") return { error: steps };
  return { rollout: { steps, shadow: choice.shadow, expect_more_denials: choice.expectMoreDenials } };
}

export function RolloutFields({
  value,
  onChange,
}: {
  readonly value: RolloutChoice;
  readonly onChange: (value: RolloutChoice) => void;
}): ReactNode {
  const [touched, setTouched] = useState(false);
  const { error } = readRollout(value);
  return (
    <div className="flex flex-col items-start gap-3">
      <Segmented
        label="How to publish"
        onChange={(publishing) => onChange({ ...value, publishing })}
        options={[
          { value: "at-once", label: "To all subjects at once" },
          { value: "in-steps", label: "In steps" },
        ]}
        value={value.publishing}
      />
      {value.publishing === "in-steps" && (
        <div className="flex w-full flex-col gap-3">
          <TextField
            className="font-mono"
            error={touched ? error : undefined}
            hint="Shares of subjects, and how long each holds. Three bad measurements in a row bring the old version back."
            label="Steps"
            onChange={(event) => {
              setTouched(true);
              onChange({ ...value, steps: event.target.value });
            }}
            value={value.steps}
          />
          <Checkbox
            checked={value.shadow}
            hint="The old version decides, and the new one’s decisions are only counted."
            label="In shadow"
            onChange={(event) => onChange({ ...value, shadow: event.target.checked })}
          />
          <Checkbox
            checked={value.expectMoreDenials}
            hint="It is not rolled back for denying more."
            label="The new version is meant to deny more"
            onChange={(event) => onChange({ ...value, expectMoreDenials: event.target.checked })}
          />
        </div>
      )}
    </div>
  );
}
