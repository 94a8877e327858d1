/**
 * Proves to the gateway that this page sends the request: a page of another origin needs permission to send the header.
 */
const pageHeaders = { 'x-gangway-page': '1' };

/**
 * The name under which the browser keeps the key or token for this tab. It survives a reload, and is gone when the tab
 * is closed.
 */
const storageKey = 'mcp-gangway admin key';

/** The key or token for the admin port. */
let token = sessionStorage.getItem(storageKey) ?? '';

/**
 * @param {string} value sent with each request from now on: a key, a start token, or the URL that ends with the token
 */
export const useToken = (value) => {
  token = value.trim().replace(/^https?:.*#/, '');
  sessionStorage.setItem(storageKey, token);
};

/**
 * Moves the start token out of the address, where it could be copied or bookmarked (docs/status-page.md).
 * @returns {boolean} false if there is none
 */
export function takeStartToken() {
  const [, startToken] = /^#([\w-]{43})$/.exec(location.hash) ?? [];
  if (startToken === undefined) return false;
  useToken(startToken);
  history.replaceState(null, '', location.pathname);
  return true;
}

/** The key or token of the page, which the playground uses for servers unless a person enters another one. */
export const ownToken = () => token;

/** Sends a request to the admin port. Paths are relative, because a proxy may have put the page anywhere. */
export function request(path, { headers = {}, ...options } = {}) {
  const authorization = token === '' ? {} : { authorization: `Bearer ${token}` };
  return fetch(path, { cache: 'no-store', ...options, headers: { ...pageHeaders, ...authorization, ...headers } });
}

/** Runs an action. Resolves with its outcome, of which `message` is a sentence; rejects with the reason if it failed. */
export async function postAction(path, body) {
  const response = await request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const outcome = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(outcome.message ?? response.statusText);
  return outcome;
}
