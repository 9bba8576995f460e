import { beforeEach, describe, expect, test } from "vitest";
import { makeStore, type StoreWindow } from "./store";

/** A browser window of which time and frames are moved by hand. */
class Desk {
  urls: string[] = [];
  pushed = 0;
  private popped: (() => void)[] = [];
  private frames: (() => void)[] = [];
  private timers = new Map<number, () => void>();
  location = { protocol: "http:", pathname: "/", search: "", hash: "" };

  window(): StoreWindow {
    const go = (url: string): void => {
      const [, search = "", hash = ""] = /^[^?#]*(\?[^#]*)?(#.*)?$/.exec(url) ?? [];
      Object.assign(this.location, { search, hash });
    };
    const fake = {
      location: this.location,
      history: {
        replaceState: (_: unknown, __: string, url: string) => void (this.urls.push(`replace ${url}`), go(url)),
        pushState: (_: unknown, __: string, url: string) => void (this.urls.push(`push ${url}`), go(url)),
      },
      addEventListener: (_: string, listener: () => void) => void this.popped.push(listener),
      requestAnimationFrame: (listener: () => void) => this.frames.push(listener),
      setTimeout: (listener: () => void) => (this.timers.set(this.timers.size + 1, listener), this.timers.size),
      clearTimeout: (id: number) => void this.timers.delete(id),
    };
    return fake as unknown as StoreWindow;
  }

  frame(): void {
    for (const frame of this.frames.splice(0)) frame();
  }

  later(): void {
    const timers = [...this.timers.values()];
    this.timers.clear();
    for (const timer of timers) timer();
  }

  back(search: string): void {
    this.location.search = search;
    for (const listener of this.popped) listener();
  }
}

describe("a store", () => {
  let desk: Desk;
  beforeEach(() => {
    desk = new Desk();
  });

  test("begins with the address", () => {
    desk.location.search = "?event=5&by=dtype";
    expect(makeStore(desk.window()).state).toMatchObject({ event: 5, by: "dtype" });
  });

  test("tells of many changes once a frame, and of none when nothing changed", () => {
    const store = makeStore(desk.window());
    let told = 0;
    const stop = store.listen(() => told++);
    for (let event = 0; event < 10; event++) store.set({ event });
    expect(told).toBe(0);
    desk.frame();
    expect(told).toBe(1);
    store.set({ event: 9 });
    desk.frame();
    expect(told).toBe(1);
    stop();
    store.set({ event: 1 });
    desk.frame();
    expect(told).toBe(1);
  });

  test("writes replacements at once, then at most once a while, the last one surely", () => {
    const store = makeStore(desk.window());
    for (let event = 1; event <= 9; event++) store.set({ event });
    expect(desk.urls).toEqual(["replace /?event=1"]);
    desk.later();
    expect(desk.urls).toEqual(["replace /?event=1", "replace /?event=9"]);
  });

  test("leaves what was seen last behind when it pushes", () => {
    const store = makeStore(desk.window());
    store.set({ event: 1 });
    store.set({ event: 2 });
    store.set({ page: "growth" }, "push");
    expect(desk.urls).toEqual(["replace /?event=1", "replace /?event=2", "push /?page=growth&event=2"]);
    desk.later();
    expect(desk.urls.length).toBe(3);
  });

  test("follows Back, and doesn't write a replacement that was waiting", () => {
    const store = makeStore(desk.window());
    store.set({ event: 1 });
    store.set({ event: 2 });
    desk.back("?event=7");
    desk.later();
    expect(store.state.event).toBe(7);
    expect(desk.urls).toEqual(["replace /?event=1"]);
  });

  test("of a page opened from disk lives in the fragment", () => {
    desk.location.protocol = "file:";
    desk.location.hash = "#event=5";
    const store = makeStore(desk.window());
    expect(store.state.event).toBe(5);
    store.set({ event: 6 });
    expect(desk.urls).toEqual(["replace #event=6"]);
  });
});
