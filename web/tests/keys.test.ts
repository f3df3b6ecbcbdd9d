// Keys reach what registered them, and stay with fields that are being typed into.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Key, Keys } from "../src/base/keys";

class Element {
  readonly isContentEditable = false;
  constructor(
    readonly tagName: string,
    readonly type = "",
  ) {}
}
class Input extends Element {}
Object.assign(globalThis, { HTMLElement: Element, HTMLInputElement: Input });

/** A page that only has a keyboard. */
function keyboard() {
  const listeners = new Map<string, (event: KeyboardEvent) => void>();
  const target = {
    addEventListener: (kind: string, then: (event: KeyboardEvent) => void) =>
      listeners.set(kind, then),
  };
  const keys = new Keys(target as unknown as EventTarget);
  const press = (what: Partial<KeyboardEvent>, kind = "keydown") => {
    let prevented = false;
    const preventDefault = () => {
      prevented = true;
    };
    const nothing = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
    listeners.get(kind)?.({ ...nothing, ...what, preventDefault } as KeyboardEvent);
    return prevented;
  };
  return { keys, press };
}

function key(change: Partial<Key>): Key {
  return { label: "", does: "", group: "View", press: () => undefined, ...change };
}

test("movement is where the keys are, whatever their letters", () => {
  const { keys, press } = keyboard();
  let count = 0;
  keys.add(
    key({
      codes: ["KeyW"],
      press: () => {
        count++;
        return undefined;
      },
    }),
  );
  assert.ok(press({ code: "KeyW", key: "," }));
  assert.ok(!press({ code: "KeyA", key: "w" }));
  assert.equal(count, 1);
});

test("with Ctrl the browser has all keys but those that ask for it", () => {
  const { keys, press } = keyboard();
  const pressed: string[] = [];
  const press_ = (name: string) => () => {
    pressed.push(name);
    return undefined;
  };
  keys.add(
    key({ chars: ["z"], press: press_("plain") }),
    key({ chars: ["z"], ctrl: true, shift: false, press: press_("ctrl") }),
  );
  assert.ok(press({ key: "z", code: "KeyZ", ctrlKey: true }));
  assert.ok(press({ key: "z", code: "KeyZ" }));
  assert.ok(!press({ key: "a", code: "KeyA", ctrlKey: true }));
  assert.deepEqual(pressed, ["ctrl", "plain"]);
});

test("who types into a field has all keys but Escape", () => {
  const { keys, press } = keyboard();
  const pressed: string[] = [];
  const note = (event: KeyboardEvent) => {
    pressed.push(event.key);
    return undefined;
  };
  keys.add(key({ chars: ["m", "Escape"], press: note }));
  const field = new Input("INPUT", "search") as unknown as HTMLInputElement;
  press({ key: "m", target: field });
  press({ key: "Escape", target: field });
  press({ key: "m", target: new Input("INPUT", "checkbox") as unknown as HTMLInputElement });
  assert.deepEqual(pressed, ["Escape", "m"]);
});

test("keys of the browser stay the browser's", () => {
  const { keys, press } = keyboard();
  keys.add(key({ chars: ["f"] }));
  assert.ok(!press({ key: "f", ctrlKey: true }));
  assert.ok(!press({ key: "f", metaKey: true }));
});

test("a key that has nothing to do leaves it to the next", () => {
  const { keys, press } = keyboard();
  const order: string[] = [];
  const first = key({
    chars: ["Enter"],
    press: () => {
      order.push("first");
      return false;
    },
  });
  const second = key({
    chars: ["Enter"],
    press: () => {
      order.push("second");
      return undefined;
    },
  });
  const remove = keys.add(first);
  keys.add(second);
  assert.ok(press({ key: "Enter" }));
  remove();
  press({ key: "Enter" });
  assert.deepEqual(order, ["first", "second", "second"]);
  assert.deepEqual(keys.all(), [second]);
});

test("with and without Shift are two keys when they are registered so", () => {
  const { keys, press } = keyboard();
  keys.add(key({ chars: ["ArrowUp"], shift: true }));
  assert.ok(!press({ key: "ArrowUp" }));
  assert.ok(press({ key: "ArrowUp", shiftKey: true }));
});
