// A link for another browser holds a code and the view, whatever is in it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { format, parse } from "../src/base/address";
import { FIRST_VIEW } from "../src/base/state";
import { linkTo } from "../src/frame/share";

test("the view comes back out of the link", () => {
  const view = { ...FIRST_VIEW, rows: "a&b=c #%", folded: ["7/x,y"], mark: { from: 1, to: 5 } };
  const link = new URL(linkTo("http://127.0.0.1:80", "c0de", format(view)));
  assert.equal(link.searchParams.get("token"), "c0de");
  assert.deepEqual(parse(link.searchParams.get("view") ?? ""), view);
  assert.equal(linkTo("http://h:1", "c", ""), "http://h:1/?token=c");
});
