# Forests of intervals in base graphics, readable for the 45 pairs of ten variables.

forest <- function(estimates, bounds, title, ...) {
  forest_many(list(estimates), list(bounds), names(estimates), title, ...)
}

# One row a label, from the top; the results of a row below each other, in their own colours.
forest_many <- function(estimates, bounds, labels, title, xlim = NULL,
                        xlab = "correlation, latent normal scale", ...) {
  count <- length(labels)
  results <- length(estimates)
  colours <- grDevices::hcl.colors(max(results, 2), "Dark 3")[seq_len(results)]
  shrink <- max(0.5, min(1, 24 / count))
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  graphics::plot.new() # a page must be open before the width of a label is known
  width <- max(graphics::strwidth(labels, units = "inches", cex = shrink))
  graphics::par(mai = c(0.8, min(width + 0.3, graphics::par("din")[1] / 2), 0.6, 0.2), new = TRUE)
  if (is.null(xlim)) xlim <- range(0, unlist(estimates), unlist(bounds), na.rm = TRUE)
  rows <- rev(seq_len(count))
  legend_room <- if (results > 1) 0.3 + 0.06 * count else 0
  graphics::plot(
    range(xlim), c(0.5 - legend_room, count + 0.5), type = "n", xlim = xlim, yaxt = "n", xlab = xlab, ylab = "", main = title, ...
  )
  graphics::axis(2, at = rows, labels = labels, las = 1, cex.axis = shrink, tick = FALSE)
  graphics::abline(v = 0, col = "grey60", lty = 2)
  offsets <- if (results == 1) 0 else seq(0.25, -0.25, length.out = results)
  for (place in seq_len(results)) {
    y <- rows + offsets[place]
    graphics::segments(bounds[[place]][, 1], y, bounds[[place]][, 2], y, col = colours[place], lwd = 2)
    graphics::points(estimates[[place]], y, pch = 19, cex = 0.8 * shrink, col = colours[place])
  }
  if (results > 1) {
    graphics::legend("bottom", names(estimates),
      col = colours, lwd = 2, pch = 19, bty = "n", cex = 0.8, horiz = TRUE
    )
  }
}

title_of <- function(x, level) paste0(x$method, ", ", 100 * level, "% intervals", alarm(x$private))

alarm <- function(private) if (private) "" else "  -  NOT PRIVATE"
