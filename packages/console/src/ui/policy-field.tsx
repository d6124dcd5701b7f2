import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId, useMemo } from "react";
import { policiesQuery } from "../api/queries.ts";
import { TextField } from "./field.tsx";

/** As many as a reader looks through. A list of ten thousand keeps a browser busy for half a second. */
const mostOffered = 100;

interface PolicyFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (id: string) => void;
  readonly hideLabel?: boolean;
  readonly hint?: string;
  readonly placeholder?: string;
}

/** The id of a policy: typed, or chosen among those that contain what is typed. */
export function PolicyField({ value, onChange, ...field }: PolicyFieldProps): ReactNode {
  const list = useId();
  const { data } = useQuery(policiesQuery);
  const isKnown = usePolicyKnown(value);
  const offered = useMemo(
    () => (data ?? []).filter(({ id }) => id.includes(value)).slice(0, mostOffered),
    [data, value],
  );
  return (
    <>
      <TextField
        {...field}
        error={isKnown === false ? "There is no such policy." : undefined}
        list={list}
        onChange={(event) => onChange(event.target.value.trim())}
        value={value}
      />
      <datalist id={list}>
        {offered.map(({ id }) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </>
  );
}

/** Undefined if none is named, or it is not known yet. */
export function usePolicyKnown(id: string): boolean | undefined {
  const { data } = useQuery({ ...policiesQuery, enabled: id !== "" });
  return id === "" ? undefined : data?.some((policy) => policy.id === id);
}
