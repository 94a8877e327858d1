const key = 'mcp-gangway.theme';
const themes = ['auto', 'light', 'dark'];

/** Starts the switch between light and dark. `auto` follows the system. */
export function startTheme(button) {
  let theme = themes.find((name) => name === localStorage.getItem(key)) ?? 'auto';
  const show = () => {
    document.documentElement.dataset.theme = theme;
    button.textContent = { auto: '◐ Auto', light: '○ Light', dark: '● Dark' }[theme];
    button.setAttribute('aria-label', `Colours: ${theme}. Change.`);
  };
  button.addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    localStorage.setItem(key, theme);
    show();
  });
  show();
}
