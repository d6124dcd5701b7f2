import { Dialog } from "@base-ui/react/dialog";
import type { KnownSubjectBody, PageBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { ask } from "../api/ask.ts";
import { policiesQuery } from "../api/queries.ts";
import { useMay } from "../session/use-session.ts";
import { classNames } from "../ui/class-names.ts";
import { floatingClass } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { subjectPath } from "../ui/subject-link.tsx";
import { chooseTheme } from "../ui/theme.ts";
import { navigation } from "./navigation.ts";
import { findItems, type PaletteItem } from "./palette-items.ts";

/** Goes to any view, policy or subject, and does what the role may do, all by keyboard. */
export default function Palette({ onClose }: { readonly onClose: () => void }): ReactNode {
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const navigate = useNavigate();
  const found = findItems(usePaletteItems(query), query);
  const list = useRef<HTMLDivElement>(null);
  const current = Math.min(active, found.length - 1);

  // biome-ignore lint/correctness/useExhaustiveDependencies: follows the choice.
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [current]);

  const choose = (item: PaletteItem | undefined) => {
    if (item === undefined) return;
    onClose();
    item.run?.();
    if (item.href !== undefined) void navigate({ href: item.href });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setActive((current + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(found[current]);
    }
  };

  return (
    <Dialog.Root onOpenChange={(isOpen) => !isOpen && onClose()} open>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-[rgb(8_14_20/50%)]" />
        <Dialog.Popup
          className={classNames(
            floatingClass,
            "fixed top-[14vh] left-1/2 z-50 w-[min(38rem,calc(100vw-2rem))] -translate-x-1/2",
          )}
        >
          <Dialog.Title className="sr-only">Search or go to</Dialog.Title>
          <div className="flex items-center gap-2.5 border-b border-line px-4">
            <Icon name="search" />
            <input
              aria-activedescendant={found.length > 0 ? `palette-${current}` : undefined}
              aria-controls="palette-list"
              aria-expanded="true"
              aria-label="Search views, policies, subjects and actions"
              autoComplete="off"
              // biome-ignore lint/a11y/noAutofocus: it was opened to type.
              autoFocus
              className="h-12 w-full bg-transparent text-base outline-none"
              onChange={(event) => {
                setQuery(event.target.value);
                setActive(0);
              }}
              onKeyDown={onKeyDown}
              placeholder="A view, a policy, or a subject such as acme"
              role="combobox"
              spellCheck={false}
              value={query}
            />
          </div>
          <div
            aria-label="Results"
            className="max-h-[50vh] overflow-y-auto p-1.5"
            id="palette-list"
            ref={list}
            role="listbox"
            tabIndex={-1}
          >
            {found.map((item, at) => (
              <PaletteRow
                active={at === current}
                at={at}
                first={found[at - 1]?.group !== item.group}
                item={item}
                key={item.id}
                onChoose={() => choose(item)}
                onPoint={() => setActive(at)}
              />
            ))}
          </div>
          {found.length === 0 && (
            <p className="px-5 pb-6 text-center text-sm text-ink-faint" role="status">
              Nothing matches “{query}”. Subjects are found by the beginning of their value.
            </p>
          )}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface PaletteRowProps {
  readonly item: PaletteItem;
  readonly at: number;
  readonly active: boolean;
  /** Of its group. */
  readonly first: boolean;
  readonly onChoose: () => void;
  readonly onPoint: () => void;
}

function PaletteRow({ item, at, active, first, onChoose, onPoint }: PaletteRowProps): ReactNode {
  return (
    <>
      {first && (
        <div aria-hidden="true" className="px-2.5 pt-2 pb-1 text-xs font-medium text-ink-faint">
          {item.group}
        </div>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the input has the focus and hears the keys. */}
      <div
        aria-selected={active}
        className={classNames(
          "flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1.5 text-sm",
          active && "bg-accent-soft",
        )}
        id={`palette-${at}`}
        onClick={onChoose}
        onMouseMove={onPoint}
        role="option"
        tabIndex={-1}
      >
        <Icon name={item.icon} />
        <span className="min-w-0 truncate">{item.label}</span>
        {item.about !== undefined && (
          <span className="min-w-0 flex-1 truncate text-right text-xs text-ink-faint">{item.about}</span>
        )}
      </div>
    </>
  );
}

const views: readonly PaletteItem[] = navigation.flatMap(({ entries }) =>
  entries.map(({ path, label, icon, words }) => ({
    id: `view ${path}`,
    group: "Views" as const,
    label,
    icon,
    words,
    href: path,
  })),
);

const themes: readonly PaletteItem[] = (["light", "dark", "system"] as const).map((theme) => ({
  id: `theme ${theme}`,
  group: "Actions",
  label: theme === "system" ? "Follow the system's theme" : `Use the ${theme} theme`,
  icon: theme === "light" ? "sun" : theme === "dark" ? "moon" : "system",
  words: "appearance colours",
  run: () => chooseTheme(theme),
}));

function usePaletteItems(query: string): readonly PaletteItem[] {
  const mayEdit = useMay("edit");
  const { data: policies } = useQuery(policiesQuery);
  const subjects = useSubjects(query.trim());
  return useMemo(() => {
    const create: readonly PaletteItem[] = mayEdit
      ? [
          {
            id: "new policy",
            group: "Actions",
            label: "Create a policy",
            icon: "plus",
            words: "new add limit",
            href: "/policies/new",
          },
        ]
      : [];
    const own = (policies ?? []).map(
      ({ id, owner }): PaletteItem => ({
        id: `policy ${id}`,
        group: "Policies",
        label: id,
        about: owner,
        icon: "policies",
        href: `/policies/${encodeURIComponent(id)}`,
      }),
    );
    return [...views, ...own, ...subjects, ...create, ...themes];
  }, [mayEdit, policies, subjects]);
}

/** Subjects whose value begins with what was typed, a moment after typing stopped. */
function useSubjects(typed: string): readonly PaletteItem[] {
  const [prefix, setPrefix] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setPrefix(typed), 150);
    return () => clearTimeout(timer);
  }, [typed]);
  const { data } = useQuery({
    queryKey: ["subjects", "prefix", prefix],
    queryFn: ({ signal }) =>
      ask<PageBody<KnownSubjectBody>>("GET", "subjects", { query: { prefix, limit: 8 }, signal }),
    enabled: prefix !== "",
    staleTime: 30_000,
  });
  return useMemo(
    () =>
      (data?.items ?? []).map(({ dimension, value }) => ({
        id: `subject ${dimension} ${value}`,
        group: "Subjects",
        label: value,
        about: dimension,
        icon: "subject",
        href: subjectPath(dimension, value),
      })),
    [data],
  );
}
