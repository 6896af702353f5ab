/*
 * Where output goes: a terminal or not, in colour or not, in which characters; and making text from
 * elsewhere fit to be shown there.
 */
#ifndef DEVGATE_CLIENT_CLI_SCREEN_H
#define DEVGATE_CLIENT_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum dg__style {
	DG__STYLE_NONE = 0,
	DG__STYLE_HEAD,
	DG__STYLE_STRONG,
	DG__STYLE_FAINT,
	DG__STYLE_GOOD,
	DG__STYLE_WARN,
	DG__STYLE_BAD
} dg__style;

typedef struct dg__screen {
	bool out_terminal, err_terminal; /**< standard output, standard error */
	bool colour; /**< of standard output: a terminal, NO_COLOR unset, TERM not dumb */
	bool utf8; /**< the locale's characters are UTF-8 */
	size_t width; /**< columns of the terminal; 80 where unknown */
} dg__screen;

/** Look. Reads the environment and takes over the locale's characters, not its numbers. */
void dg__screen_init(dg__screen *ret_screen);

/**
 * Make text fit to be shown: control characters, those that turn the writing direction and bytes
 * that are no UTF-8 become a replacement mark; line ends and tabs a blank.
 *
 * @return buf, cut at a character boundary.
 */
const char *dg__screen_clean(const dg__screen *screen, const char *text, char *buf, size_t size);

/** Print text cleaned, of any length. */
void dg__screen_put(const dg__screen *screen, FILE *stream, const char *text);

/** Columns that cleaned text takes. */
size_t dg__screen_columns(const dg__screen *screen, const char *text);

/** Escape sequence that starts a style, and one that ends any; "" without colour. */
const char *dg__screen_style(const dg__screen *screen, dg__style style);
const char *dg__screen_reset(const dg__screen *screen, dg__style style);

/**
 * Take one character of UTF-8 apart.
 *
 * @param text  Not at its end.
 * @return Its length in bytes; 1 with ret_code 0xFFFD where it is malformed.
 */
size_t dg__screen_decode(const char *text, unsigned long *ret_code);
/** Whether a character may steer a terminal or turn the writing direction. */
bool dg__screen_is_control(unsigned long code);

#endif
