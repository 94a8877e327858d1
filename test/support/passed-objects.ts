/** The objects whose methods a stack passes, the innermost first: `Link` of `at Link.send (/…/link.ts:145:19)`. */
const methodsIn = (stack: string): readonly (readonly [object: string, method: string])[] =>
  [...stack.matchAll(/^ {4}at (\w+)\.#?(\w+) \(/gm)].map(([, object = '', method = '']) => [object, method]);

/**
 * The classes of the objects that a message passes between two of them, in its order. `to` is included, `from` is not. A stack
 * names classes, and no objects. If a class comes again, it is another object, unless an interceptor has passed the
 * message back to its link.
 */
export function passedObjects(stack: string, from: string, to: string): readonly string[] {
  const methods = methodsIn(stack).toReversed();
  const interceptors = new Set(methods.flatMap(([object, method]) => (method === 'passSend' ? [object] : [])));
  const names = methods.map(([object]) => object);
  const path = names.slice(names.lastIndexOf(from) + 1, names.indexOf(to) + 1);
  return path.filter((name, index) => {
    const previous = path[index - 1] ?? from;
    return name !== previous && !(name === 'Link' && interceptors.has(previous));
  });
}
