import * as fc from "fast-check";
import { expect, it } from "vitest";
import { anyCharacter } from "./any-character.ts";

it("anyCharacter is one character, never half of a surrogate pair", () => {
  fc.assert(fc.property(anyCharacter, (character) => /^[^\ud800-\udfff]$/u.test(character)));
});

it.each(["\0", "a", "\ud7ff", "\ue000", "\uffff", "\u{10000}", "\u{10ffff}"])("anyCharacter can be %j", (character) => {
  expect(anyCharacter.canShrinkWithoutContext(character)).toBe(true);
});

it.each(["", "ab", "\ud800", "\udfff", 1, undefined])("anyCharacter cannot be %j", (value) => {
  expect(anyCharacter.canShrinkWithoutContext(value)).toBe(false);
});
