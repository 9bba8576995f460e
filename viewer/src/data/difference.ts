// The difference of two moments, of which only the tables of each are stored.

import type { MomentGroup, MomentTable } from "./types";

/** As the server answers `moment?event&other`: groups of both, ordered by the size of the difference. */
export function momentDifference(table: MomentTable, other: MomentTable): MomentTable {
  const groups = new Map<string, MomentGroup>();
  for (const group of table.groups) groups.set(group.key, { ...group, other_bytes: 0, other_count: 0 });
  for (const group of other.groups) {
    const known = groups.get(group.key) ?? { ...group, bytes: 0, count: 0 };
    groups.set(group.key, { ...known, other_bytes: group.bytes, other_count: group.count });
  }
  const change = (group: MomentGroup): number => Math.abs(group.bytes - (group.other_bytes ?? 0));
  const difference: MomentTable = {
    ...table,
    other_active: other.active,
    groups: [...groups.values()].sort((a, b) => change(b) - change(a) || (a.key < b.key ? -1 : 1)),
  };
  const notes = [table.nearest, other.nearest, cutNote(table, other)].filter((note) => note !== undefined);
  if (notes.length > 0) difference.nearest = notes.join("; ");
  return difference;
}

/** A group that one table left out counts as 0 there, which must be said. */
function cutNote(table: MomentTable, other: MomentTable): string | undefined {
  const cut = table.left_out.groups + other.left_out.groups;
  return cut === 0 ? undefined : `${cut} small groups that this page left out of a moment count as 0 in it`;
}
