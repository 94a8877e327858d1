// The address of what is shown, such as `#playground/everything/echo` or `#sessions/alice?failed=1`. It can be shared,
// and the browser goes back and forward in it.

/** A part that is not encoded well stays as it is: a person may have typed it. */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Reads an address: the view, the parts after it, and the choices after `?`. */
export function readAddress(hash) {
  const [path, query = ''] = hash.replace(/^#/, '').split('?');
  const [view, ...parts] = path.split('/').map(decode);
  return { view, parts, choices: Object.fromEntries(new URLSearchParams(query)) };
}

/** Writes an address. Empty parts at the end and empty choices are left out. */
export function writeAddress(view, parts = [], choices = {}) {
  const end = parts.findLastIndex((part) => part !== '' && part !== undefined) + 1;
  const path = [view, ...parts.slice(0, end).map((part) => encodeURIComponent(part ?? ''))].join('/');
  const query = new URLSearchParams(Object.entries(choices).filter(([, value]) => value));
  return `#${path}${query.size === 0 ? '' : `?${query}`}`;
}

/** Notes in the address what a person types or sorts. The browser goes back past it. */
export const noteAddress = (...parts) => change('replaceState', parts);

/** Notes in the address what a person has opened or chosen. The browser goes back to what was shown before. */
export const pushAddress = (...parts) => change('pushState', parts);

function change(how, parts) {
  const hash = writeAddress(...parts);
  if (hash !== location.hash) history[how](null, '', hash);
}
