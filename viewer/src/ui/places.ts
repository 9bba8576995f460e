// Where moments are on the axes, remembered: a cursor is drawn in every frame and its place is asked for once.

import type { AxisName, Moment, Place, Source } from "../data/types";

/** A held arrow key passes thousands of moments. */
const MOST_KEPT = 2000;

export class Places {
  private readonly known = new Map<string, Place | "asked" | "failed">();

  constructor(
    private readonly source: Source,
    /** Called when a place that was asked for has come. */
    private readonly arrived: () => void,
  ) {}

  know(r: number, place: Place): void {
    this.keep(`${r} ${place.event}`, place);
  }

  /** Null while it is being asked for, and where the axis has no such position. */
  position(r: number, event: Moment, axis: AxisName): number | null {
    if (axis === "event") return event;
    const key = `${r} ${event}`;
    const place = this.known.get(key);
    if (place === undefined) this.askFor(r, event, key);
    if (place === undefined || typeof place === "string") return null;
    return axis === "time" ? place.time : place.step;
  }

  private askFor(r: number, event: Moment, key: string): void {
    this.keep(key, "asked");
    this.source.place(r, { event }).then(
      (place) => {
        this.keep(key, place);
        this.arrived();
      },
      // The cursor is not drawn then; the panel, which asks about the same moment, says why.
      () => this.keep(key, "failed"),
    );
  }

  private keep(key: string, place: Place | "asked" | "failed"): void {
    if (this.known.size >= MOST_KEPT) this.known.clear();
    this.known.set(key, place);
  }
}
