import {
  createSortedRowModel,
  rowSortingFeature,
  type SortingState,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { formatCount } from "../format/numbers.ts";
import { classNames } from "./class-names.ts";
import { Icon } from "./icon.tsx";

export interface TableColumn<Row> {
  readonly id: string;
  /** Empty for a column of buttons. */
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** What it is sorted by; absent: it is not. Texts are sorted as people do: `p9` before `p10`. */
  readonly sortBy?: (row: Row) => string | number;
  /** Numbers are at the right. */
  readonly right?: boolean;
  /** As in CSS. Columns without one share the rest. */
  readonly width?: string;
}

interface DataTableProps<Row> {
  /** Names the table for screen readers. */
  readonly label: string;
  readonly rows: readonly Row[];
  /** The same array in every render. */
  readonly columns: readonly TableColumn<Row>[];
  readonly rowKey: (row: Row) => string;
  readonly sort?: TableSort | undefined;
  /** The address may know how it is sorted; otherwise the table does. */
  readonly onSort?: (sort: TableSort | undefined) => void;
  /** A row was clicked, or Enter was pressed on it. */
  readonly onOpen?: (row: Row) => void;
  /** Shown in place of no rows. */
  readonly empty?: ReactNode;
  /** The height at which it scrolls, as in CSS. */
  readonly maxHeight?: string;
  readonly rowHeight?: number;
}

export interface TableSort {
  readonly by: string;
  readonly descending: boolean;
}

/** More rows than this scroll in the table, which then draws only those in view. */
const drawnAtOnce = 60;

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });

/** A table that sorts, that 100 000 rows do not slow down, and that arrow keys go through. */
export function DataTable<Row>(props: DataTableProps<Row>): ReactNode {
  const { label, rows, columns, rowKey, onOpen, empty, maxHeight = "70vh", rowHeight = 36 } = props;
  const [ownSort, setOwnSort] = useState<TableSort | undefined>(props.sort);
  const sort = props.onSort === undefined ? ownSort : props.sort;
  const setSort = props.onSort ?? setOwnSort;
  const sorted = useSortedRows(rows, columns, sort);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = sorted.length > drawnAtOnce;
  const virtualizer = useVirtualizer({
    count: sorted.length,
    enabled: virtual,
    estimateSize: () => rowHeight,
    getScrollElement: () => scroller.current,
    overscan: 12,
  });
  const shown = virtual ? virtualizer.getVirtualItems().map(({ index }) => index) : sorted.map((_, index) => index);
  const first = shown[0] ?? 0;
  const last = shown.at(-1) ?? -1;
  const { active, setActive, onKeyDown } = useActiveRow(
    sorted.length,
    scroller,
    (index) => virtual && virtualizer.scrollToIndex(index),
  );
  const reachable = active >= first && active <= last ? active : first;
  const latest = useRef(props);
  latest.current = props;
  const open = useCallback((row: unknown) => latest.current.onOpen?.(row as Row), []);

  if (sorted.length === 0 && empty !== undefined) return empty;
  return (
    <div className="overflow-auto" ref={scroller} style={virtual ? { maxHeight } : undefined}>
      <table
        aria-label={label}
        aria-rowcount={sorted.length + 1}
        className="w-full table-fixed border-collapse text-sm"
      >
        <colgroup>
          {columns.map(({ id, width }) => (
            <col key={id} style={{ width }} />
          ))}
        </colgroup>
        <thead className="sticky top-0 z-10 bg-surface">
          <tr>
            {columns.map((column) => (
              <HeaderCell column={column} key={column.id} setSort={setSort} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody onKeyDown={(event) => onKeyDown(event, () => onOpen?.(sorted[reachable]!))}>
          {virtual && <Spacer columns={columns.length} height={first * rowHeight} />}
          {shown.map((index) => (
            <DrawnRow
              columns={columns as readonly TableColumn<unknown>[]}
              height={rowHeight}
              index={index}
              key={rowKey(sorted[index]!)}
              onFocus={setActive}
              onOpen={onOpen === undefined ? undefined : open}
              reachable={index === reachable}
              row={sorted[index]!}
            />
          ))}
          {virtual && <Spacer columns={columns.length} height={(sorted.length - 1 - last) * rowHeight} />}
        </tbody>
      </table>
      {virtual && (
        <p className="sticky bottom-0 left-0 border-t border-line bg-surface px-4 py-1.5 text-xs text-ink-faint">
          {formatCount(sorted.length)} rows
        </p>
      )}
    </div>
  );
}

interface DrawnRowProps {
  readonly row: unknown;
  readonly index: number;
  readonly columns: readonly TableColumn<unknown>[];
  readonly height: number;
  /** By the Tab key: one row of the table is. */
  readonly reachable: boolean;
  readonly onFocus: (index: number) => void;
  readonly onOpen: ((row: unknown) => void) | undefined;
}

/** Drawn again only if something of it changed: scrolling and arrow keys leave most rows as they are. */
const DrawnRow = memo(
  ({ row, index, columns, height, reachable, onFocus, onOpen }: DrawnRowProps): ReactNode => (
    <tr
      aria-rowindex={index + 2}
      className={classNames(
        "border-t border-line -outline-offset-2 hover:bg-sunken/70 focus-visible:bg-sunken",
        onOpen !== undefined && "cursor-pointer",
      )}
      data-row={index}
      onClick={(event) => !isOnControl(event) && onOpen?.(row)}
      onFocus={() => onFocus(index)}
      style={{ height }}
      tabIndex={reachable ? 0 : -1}
    >
      {columns.map((column) => (
        <td
          className={classNames("truncate px-4 py-1 align-middle", column.right === true && "text-right")}
          key={column.id}
        >
          {column.cell(row)}
        </td>
      ))}
    </tr>
  ),
);

function useSortedRows<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  sort: TableSort | undefined,
): readonly Row[] {
  const { by, descending = false } = sort ?? {};
  const sorting = useMemo<SortingState>(
    () => (by === undefined ? [] : [{ id: by, desc: descending }]),
    [by, descending],
  );
  const definitions = useMemo(
    () =>
      columns.map(({ id, sortBy }) => ({
        id,
        accessorFn: (item: { readonly row: Row }) => sortKey(sortBy?.(item.row) ?? ""),
        enableSorting: sortBy !== undefined,
        sortFn: (one: { getValue: (id: string) => unknown }, other: { getValue: (id: string) => unknown }) =>
          compare(one.getValue(id) as string | number, other.getValue(id) as string | number),
      })),
    [columns],
  );
  // Rows in an object each: a table may have rows that are texts. Rows that are not sorted need no model.
  const isSorted = by !== undefined;
  const data = useMemo(() => (isSorted ? rows.map((row) => ({ row })) : []), [rows, isSorted]);
  const table = useTable({ features, columns: definitions, data, state: { sorting } });
  const { rows: models } = table.getRowModel();
  const sorted = useMemo(() => models.map(({ original }) => original.row), [models]);
  return isSorted ? sorted : rows;
}

/** A text whose order is that of its numbers too, made once for each row: comparing by a collator takes many times as long. */
function sortKey(value: string | number): string | number {
  return typeof value === "number"
    ? value
    : value.toLowerCase().replaceAll(/\d+/g, (digits) => digits.padStart(12, "0"));
}

function compare(one: string | number, other: string | number): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Arrow keys move from row to row, also to those that are not drawn yet. */
function useActiveRow(
  count: number,
  scroller: { readonly current: HTMLElement | null },
  reveal: (index: number) => void,
) {
  const [active, setActive] = useState(0);
  const wanted = useRef<number>(undefined);
  useEffect(() => {
    if (wanted.current === undefined) return;
    const row = scroller.current?.querySelector<HTMLElement>(`tr[data-row="${wanted.current}"]`);
    if (row === null || row === undefined) return;
    wanted.current = undefined;
    row.focus();
  });
  const move = (index: number) => {
    const next = Math.max(0, Math.min(count - 1, index));
    wanted.current = next;
    reveal(next);
    setActive(next);
  };
  const onKeyDown = (event: KeyboardEvent, open: () => void) => {
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: 12,
      PageUp: -12,
      Home: -count,
      End: count,
    };
    const step = steps[event.key];
    if (!(event.target instanceof HTMLTableRowElement)) return;
    if (event.key === "Enter") open();
    if (step === undefined) return;
    event.preventDefault();
    move(active + step);
  };
  return { active, setActive, onKeyDown };
}

interface HeaderCellProps<Row> {
  readonly column: TableColumn<Row>;
  readonly sort: TableSort | undefined;
  readonly setSort: (sort: TableSort | undefined) => void;
}

function HeaderCell<Row>({ column, sort, setSort }: HeaderCellProps<Row>): ReactNode {
  const { id, title, sortBy, right = false } = column;
  const sorted = sort?.by === id ? sort : undefined;
  // Numbers are looked at from the largest, names from the first; the third press sorts as before.
  const next =
    sorted === undefined
      ? { by: id, descending: right }
      : sorted.descending === right
        ? { by: id, descending: !right }
        : undefined;
  const direction = sorted === undefined ? undefined : sorted.descending ? "descending" : "ascending";
  const className = classNames("h-8 px-4 text-xs font-medium text-ink-faint", right ? "text-right" : "text-left");
  if (sortBy === undefined)
    return (
      <th className={className} scope="col">
        {title === "" ? <span className="sr-only">Actions</span> : title}
      </th>
    );
  return (
    <th aria-sort={direction} className={className} scope="col">
      <button
        className={classNames("inline-flex items-center gap-1 hover:text-ink", sorted !== undefined && "text-ink")}
        onClick={() => setSort(next)}
        type="button"
      >
        {title}
        {sorted !== undefined && <Icon name={sorted.descending ? "down" : "up"} size={11} />}
      </button>
    </th>
  );
}

/** Keeps the room of rows that are not drawn. */
function Spacer({ columns, height }: { readonly columns: number; readonly height: number }): ReactNode {
  if (height <= 0) return null;
  return (
    <tr style={{ height }}>
      <td aria-hidden="true" colSpan={columns} />
    </tr>
  );
}

function isOnControl(event: MouseEvent): boolean {
  return event.target instanceof Element && event.target.closest("a, button, input, select, label") !== null;
}
