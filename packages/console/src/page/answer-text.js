/** So much of what a server said is shown beside the cause. The whole answer can be opened. */
const maxSaid = 300;

/** Returns what a failed answer says: the text of its error or of its result. Nothing if the answer was cut or has none. */
export function textOfAnswer(answer = '') {
  try {
    const { error, result } = JSON.parse(answer);
    const texts = result?.content?.map(({ text }) => text) ?? [error?.message];
    const said = texts.filter((text) => typeof text === 'string').join(' ');
    return said.length > maxSaid ? `${said.slice(0, maxSaid)} …` : said;
  } catch {
    return '';
  }
}
