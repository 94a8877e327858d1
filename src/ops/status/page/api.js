/** Says to the gateway that this page asks: no page of another origin can send it without being allowed to first. */
const own = { 'x-gangway-page': '1' };

/** For the admin port, where it wants one. In memory alone: it is gone with the page. */
let token = '';

/** @param {string} value from now on sent with each request; empty for none */
export const useToken = (value) => {
  token = value.trim();
};

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
