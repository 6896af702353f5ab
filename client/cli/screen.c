/* See screen.h. */
#include "client/cli/screen.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define REPLACEMENT "\xEF\xBF\xBD"

static size_t terminal_width(void)
{
	struct winsize size;
	memset(&size, 0, sizeof(size));
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return 80;
}

void dg__screen_init(dg__screen *ret_screen)
{
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	/* Characters only: numbers are written and read with a full stop everywhere. */
	const char *locale = setlocale(LC_CTYPE, "");
	ret_screen->out_terminal = isatty(STDOUT_FILENO) == 1;
	ret_screen->err_terminal = isatty(STDERR_FILENO) == 1;
	ret_screen->colour = ret_screen->out_terminal && !(no_colour && *no_colour) && term &&
			     strcmp(term, "dumb") != 0;
	ret_screen->utf8 = locale && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	ret_screen->width = terminal_width();
}

/* What the first byte of a character promises; 0 where it can be none. */
static size_t sequence_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xC2 || first > 0xF4)
		return 0;
	return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

size_t dg__screen_decode(const char *text, unsigned long *ret_code)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length = sequence_length(*at);
	static const unsigned char lead[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
	static const unsigned long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned long code = length ? *at & lead[length] : 0;
	for (size_t i = 1; i < length; i++) {
		/* Also stops at the end of the text. */
		if ((at[i] & 0xC0) != 0x80) {
			length = 0;
			break;
		}
		code = code << 6 | (at[i] & 0x3F);
	}
	if (length == 0 || code < least[length] || code > 0x10FFFF ||
		(code >= 0xD800 && code < 0xE000)) {
		*ret_code = 0xFFFD;
		return 1;
	}
	*ret_code = code;
	return length;
}

bool dg__screen_is_control(unsigned long code)
{
	return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C ||
	       (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF || code == 0xAD;
}

/* What to show for the character at text; its length in *ret_length. */
static const char *shown(
	const dg__screen *screen, const char *text, size_t *ret_length, size_t *ret_shown)
{
	/* In a terminal of eight-bit characters, bytes of UTF-8 can be control characters. */
	bool ascii = !screen->utf8 && (screen->out_terminal || screen->err_terminal);
	unsigned long code;
	*ret_length = dg__screen_decode(text, &code);
	if (code == '\n' || code == '\t' || code == '\r') {
		*ret_shown = 1;
		return " ";
	}
	bool malformed = code == 0xFFFD && *ret_length == 1;
	if (!malformed && !dg__screen_is_control(code) && !(ascii && code >= 0x80)) {
		*ret_shown = *ret_length;
		return text;
	}
	*ret_shown = ascii ? 1 : sizeof(REPLACEMENT) - 1;
	return ascii ? "?" : REPLACEMENT;
}

const char *dg__screen_clean(const dg__screen *screen, const char *text, char *buf, size_t size)
{
	size_t used = 0;
	while (*text) {
		size_t length, count;
		const char *part = shown(screen, text, &length, &count);
		if (used + count >= size)
			break;
		memcpy(buf + used, part, count);
		used += count;
		text += length;
	}
	if (size > 0)
		buf[used] = '\0';
	return buf;
}

void dg__screen_put(const dg__screen *screen, FILE *stream, const char *text)
{
	while (*text) {
		size_t length, count;
		const char *part = shown(screen, text, &length, &count);
		fwrite(part, 1, count, stream);
		text += length;
	}
}

size_t dg__screen_columns(const dg__screen *screen, const char *text)
{
	size_t columns = 0;
	while (*text) {
		unsigned long code;
		text += dg__screen_decode(text, &code);
		/* Without a locale wcwidth() knows ASCII alone. */
		int width = screen->utf8 ? wcwidth((wchar_t)code) : 1;
		columns += width < 0 ? 1 : (size_t)width;
	}
	return columns;
}

const char *dg__screen_style(const dg__screen *screen, dg__style style)
{
	static const char *const sequences[] = {
		[DG__STYLE_NONE] = "",
		[DG__STYLE_HEAD] = "\033[1m",
		[DG__STYLE_STRONG] = "\033[1m",
		[DG__STYLE_FAINT] = "\033[2m",
		[DG__STYLE_GOOD] = "\033[32m",
		[DG__STYLE_WARN] = "\033[33m",
		[DG__STYLE_BAD] = "\033[31m",
	};
	return screen->colour ? sequences[style] : "";
}

const char *dg__screen_reset(const dg__screen *screen, dg__style style)
{
	return screen->colour && style != DG__STYLE_NONE ? "\033[0m" : "";
}
