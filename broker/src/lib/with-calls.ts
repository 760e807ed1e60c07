/** An object with some methods replaced. The others run on `part` itself. */
export function withCalls<Part extends object>(part: Part, replaced: Partial<Part>): Part {
  return new Proxy(part, { get: (_, name) => Reflect.get(replaced, name) ?? bound(part, name) });
}

function bound(part: object, name: string | symbol): unknown {
  const member: unknown = Reflect.get(part, name);
  return typeof member === "function" ? member.bind(part) : member;
}
