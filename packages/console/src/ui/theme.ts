import { useSyncExternalStore } from "react";

export const themeChoices = ["system", "light", "dark"] as const;
export type ThemeChoice = (typeof themeChoices)[number];

const key = "sluice.theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function readChoice(): ThemeChoice {
  const stored = localStorage.getItem(key);
  return themeChoices.find((one) => one === stored) ?? "system";
}

function apply(): void {
  const choice = readChoice();
  const dark = choice === "dark" || (choice === "system" && prefersDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const listener of listeners) listener();
}

prefersDark.addEventListener("change", apply);
// Another window of the console chose.
addEventListener("storage", apply);

export function chooseTheme(choice: ThemeChoice): void {
  if (choice === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, choice);
  apply();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What was chosen, and which of the two is shown. */
export function useTheme(): { readonly choice: ThemeChoice; readonly shown: "light" | "dark" } {
  const choice = useSyncExternalStore(subscribe, readChoice);
  const shown = useSyncExternalStore(subscribe, () => document.documentElement.dataset.theme);
  return { choice, shown: shown === "dark" ? "dark" : "light" };
}
