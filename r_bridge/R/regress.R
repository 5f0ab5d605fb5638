#' Regression from a posterior of correlations
#'
#' For every draw of the correlation matrix, the standardised coefficients of one variable on others and R
#' squared, on the latent standard normal scale. It uses the posterior alone: a private posterior gives a private
#' regression at no further cost.
#'
#' @param posterior a `dp_posterior`.
#' @param formula such as `Kcal ~ Grain + Sugar`; `.` stands for all other variables. Names that are not
#'   syntactic go in backticks. There are no interactions and no functions: the scale is latent.
#' @param prob posterior probability of the intervals.
#' @param x,object a `dp_regression`.
#' @param parm terms to return, by number or name.
#' @param level posterior probability of the intervals.
#' @param row.names,optional ignored.
#' @param ... further arguments of [graphics::plot.default()]; otherwise ignored.
#' @return a `dp_regression`. `summary()` and `as.data.frame()`: coefficients, partial correlations and R
#'   squared, one row each. `coef()`, `confint()`: posterior means and intervals of the coefficients.
#' @export
#' @examplesIf dp_available()
#' posterior <- dp_erl(mtcars, c("mpg", "wt", "hp"), engine = "native", draws = 500, seed = 1)
#' fit <- dp_regress(posterior, mpg ~ wt + hp)
#' fit
#' confint(fit)
#' plot(fit)
dp_regress <- function(posterior, formula, prob = 0.95) {
  check_class(posterior, "dp_result")
  named <- formula_names(formula, posterior$variables)
  answer <- door("regress", result_to_python(posterior), named$response, as.list(named$terms), prob)
  draws <- matrix(unlist(answer$coefficients), ncol = length(named$terms), byrow = TRUE)
  colnames(draws) <- named$terms
  structure(
    list(
      response = named$response, terms = named$terms, formula = formula, coefficients = draws,
      r_squared = unlist(answer$r_squared), table = frame_from_python(answer$summary),
      private = answer$private, prob = prob, text = answer$text
    ),
    class = "dp_regression"
  )
}

# Read names from a formula: plain sums of names, so that a column called `a*b` is a name and never a product.
formula_names <- function(formula, variables) {
  if (!inherits(formula, "formula") || length(formula) != 3 || !is.symbol(formula[[2]])) {
    stop("`formula` must be like Kcal ~ Grain + Sugar, with one variable on the left", call. = FALSE)
  }
  response <- as.character(formula[[2]])
  terms <- sum_terms(formula[[3]])
  if ("." %in% terms) terms <- setdiff(union(setdiff(terms, "."), variables), response)
  list(response = response, terms = terms)
}

sum_terms <- function(side) {
  if (is.symbol(side)) return(as.character(side))
  if (is.call(side) && identical(side[[1]], as.name("+")) && length(side) == 3) {
    return(c(sum_terms(side[[2]]), sum_terms(side[[3]])))
  }
  if (is.call(side) && identical(side[[1]], as.name("("))) return(sum_terms(side[[2]]))
  stop("only sums of variables can stand on the right, not `", paste(deparse(side), collapse = ""), "`",
    call. = FALSE
  )
}

#' @export
print.dp_regression <- function(x, ...) print.dp_result(x)

#' @rdname dp_regress
#' @export
summary.dp_regression <- function(object, ...) object$table

#' @rdname dp_regress
#' @export
as.data.frame.dp_regression <- function(x, row.names = NULL, optional = FALSE, ...) x$table

#' @rdname dp_regress
#' @export
coef.dp_regression <- function(object, ...) colMeans(object$coefficients)

#' @rdname dp_regress
#' @export
confint.dp_regression <- function(object, parm, level = object$prob, ...) {
  intervals(object$coefficients, parm, level)
}

#' @rdname dp_regress
#' @export
plot.dp_regression <- function(x, ...) {
  title <- paste0("Coefficients of ", x$response, ", ", 100 * x$prob, "% intervals", alarm(x$private))
  forest(coef(x), confint(x), title, xlab = "standardised coefficient, latent normal scale", ...)
  invisible(x)
}
