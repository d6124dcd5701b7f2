import { Tabs as BaseTabs } from "@base-ui/react/tabs";
import type { ReactNode } from "react";

interface TabsProps<T extends string> {
  readonly label: string;
  /** The address knows which is shown. */
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly tabs: readonly { readonly value: T; readonly label: ReactNode; readonly content: () => ReactNode }[];
}

export function Tabs<T extends string>({ label, value, onChange, tabs }: TabsProps<T>): ReactNode {
  return (
    <BaseTabs.Root className="flex min-w-0 flex-col gap-4" onValueChange={(next) => onChange(next as T)} value={value}>
      <BaseTabs.List aria-label={label} className="flex flex-wrap gap-1 border-b border-line">
        {tabs.map((tab) => (
          <BaseTabs.Tab
            className="-mb-px h-9 border-b-2 border-transparent px-3 text-sm font-medium text-ink-faint hover:text-ink data-active:border-accent data-active:text-ink aria-selected:border-accent aria-selected:text-ink"
            key={tab.value}
            value={tab.value}
          >
            {tab.label}
          </BaseTabs.Tab>
        ))}
      </BaseTabs.List>
      {tabs.map((tab) => (
        <BaseTabs.Panel className="min-w-0 outline-none" key={tab.value} value={tab.value}>
          {tab.value === value && tab.content()}
        </BaseTabs.Panel>
      ))}
    </BaseTabs.Root>
  );
}
