import { Link, Outlet } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { LiveProvider } from "../session/live.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { classNames } from "../ui/class-names.ts";
import { ErrorBoundary } from "../ui/error-boundary.tsx";
import { Icon } from "../ui/icon.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { AccountMenu } from "./account-menu.tsx";
import { KillSwitchBanner } from "./kill-switch-banner.tsx";
import { navigation } from "./navigation.ts";
import { NodeState } from "./node-state.tsx";

const Palette = lazy(() => import("./palette.tsx"));

/** Around every view of a signed-in caller. */
export function Shell({ path }: { readonly path: string }): ReactNode {
  const [navigating, setNavigating] = useState(false);
  const palette = usePalette();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another view closes the drawer.
  useEffect(() => setNavigating(false), [path]);
  return (
    <LiveProvider>
      <a
        className="sr-only rounded-md bg-accent px-3 py-2 text-accent-ink focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50"
        href="#main"
      >
        Skip to the content
      </a>
      <div className="flex min-h-screen">
        <Navigation onClose={() => setNavigating(false)} open={navigating} />
        <div className="flex min-w-0 flex-1 flex-col">
          <KillSwitchBanner />
          <header className="sticky top-0 z-30 flex h-13 items-center gap-3 border-b border-line bg-surface/95 px-4 backdrop-blur">
            <IconButton className="lg:hidden" icon="menu" label="Navigation" onClick={() => setNavigating(true)} />
            <Button
              aria-keyshortcuts="Control+K Meta+K"
              className="w-64 justify-between text-ink-faint"
              icon="search"
              onClick={palette.open}
            >
              <span className="flex-1 text-left font-normal">Search or go to…</span>
              <kbd className="rounded border border-line bg-sunken px-1 font-sans text-xs">
                {isApple ? "⌘K" : "Ctrl K"}
              </kbd>
            </Button>
            <div className="flex-1" />
            <NodeState />
            <AccountMenu />
          </header>
          <main className="min-w-0 flex-1 outline-none" id="main" tabIndex={-1}>
            <ErrorBoundary key={path}>
              <Suspense fallback={<SkeletonRows />}>
                <Outlet />
              </Suspense>
            </ErrorBoundary>
          </main>
        </div>
      </div>
      {palette.shown && (
        <Suspense fallback={null}>
          <Palette onClose={palette.close} />
        </Suspense>
      )}
    </LiveProvider>
  );
}

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Opened by its button, and by the keys that other tools have taught. */
function usePalette() {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      setShown((is) => !is);
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, []);
  return { shown, open: () => setShown(true), close: () => setShown(false) };
}

function Navigation({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }): ReactNode {
  return (
    <>
      {open && (
        <button
          aria-label="Close the navigation"
          className="fixed inset-0 z-40 bg-[rgb(8_14_20/50%)] lg:hidden"
          onClick={onClose}
          type="button"
        />
      )}
      <nav
        aria-label="Views"
        className={classNames(
          "z-40 w-56 shrink-0 border-r border-line bg-surface",
          open ? "fixed inset-y-0 left-0" : "hidden lg:block",
        )}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      >
        <div className="sticky top-0 flex max-h-screen flex-col gap-5 overflow-y-auto px-3 py-3">
          <Link
            className="flex items-center gap-2 rounded-md px-2 py-1.5 text-lg font-semibold tracking-tight"
            search={{}}
            to="/"
          >
            <img alt="" height={22} src="/favicon.svg" width={22} />
            Sluice
          </Link>
          {navigation.map((group) => (
            <div className="flex flex-col gap-0.5" key={group.label}>
              <p className="px-2 pb-1 text-xs font-medium text-ink-faint">{group.label}</p>
              {group.entries.map(({ path, label, icon }) => (
                <Link
                  activeOptions={{ exact: path === "/", includeSearch: false }}
                  activeProps={{ className: "bg-accent-soft font-medium text-accent" }}
                  className="flex h-8 items-center gap-2.5 rounded-md px-2 text-sm transition-colors hover:bg-sunken"
                  inactiveProps={{ className: "text-ink-soft" }}
                  key={path}
                  search={{}}
                  to={path}
                >
                  <Icon name={icon} size={17} />
                  {label}
                </Link>
              ))}
            </div>
          ))}
        </div>
      </nav>
    </>
  );
}
