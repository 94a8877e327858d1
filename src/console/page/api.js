/** Says to the gateway that this page asks: no page of another origin can send it without being allowed to first. */
const own = { 'x-gangway-page': '1' };

/** Under this name the browser keeps the key or word for this tab: a reload works, and nothing is left when it is closed. */
const kept = 'mcp-gangway admin key';

/** For the admin port. */
let token = sessionStorage.getItem(kept) ?? '';

/** @param {string} value from now on sent with each request: a key, a word, or the URL that ends with the word */
export const useToken = (value) => {
  token = value.trim().replace(/^https?:.*#/, '');
  sessionStorage.setItem(kept, token);
};

/**
 * Takes the word of this start out of the address, where it could be copied or bookmarked (docs/status-page.md).
 * @returns {boolean} false if there is none
 */
export function takeWord() {
  const [, word] = /^#([\w-]{43})$/.exec(location.hash) ?? [];
  if (word === undefined) return false;
  useToken(word);
  history.replaceState(null, '', location.pathname);
  return true;
}

/** Asks the gateway's admin port. Paths are relative: a proxy may have put the page anywhere. */
export function ask(path, { headers = {}, ...options } = {}) {
  const authorization = token === '' ? {} : { authorization: `Bearer ${token}` };
  return fetch(path, { cache: 'no-store', ...options, headers: { ...own, ...authorization, ...headers } });
}

/** Asks for something to be done. Resolves with what came of it, in words; rejects with why not. */
export async function act(path, body) {
  const response = await ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { said = response.statusText } = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(said);
  return said;
}
